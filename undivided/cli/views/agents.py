"""Agents in a terminal: all of them in a table, one of them whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from undivided.cli.views.cells import (
    NONE,
    facts,
    giving,
    moment,
    more,
    one_line,
    plain,
    state,
    table,
)

NOBODY = "There are no agents yet. Make one: undivided agents create NAME"


def agents_view(page: Mapping[str, Any]) -> RenderableType:
    """A page of agents."""
    if not page["items"]:
        return Text(NOBODY)
    listed = table(
        "id", "name", "model", "status", "attention", "waiting", giving=("name", "model")
    )
    for agent in page["items"]:
        listed.add_row(
            agent["id"],
            giving(agent["name"]),
            giving(agent["model"]),
            state(agent["status"]),
            state(agent["attentionState"]),
            str(agent["mailboxDepth"]),
        )
    return Group(listed, *more(page))


def agent_view(agent: Mapping[str, Any]) -> RenderableType:
    """One agent, its policy included."""
    tools = agent["tools"]
    about = facts(
        {
            "id": agent["id"],
            "name": agent["name"],
            "definition": agent["definition"],
            "model": agent["model"],
            "instructions": agent["instructions"] or None,
            "tools": "every one that fits" if tools is None else ", ".join(tools) or "none",
            "team": agent["teamId"],
            "heartbeat": _seconds(agent["heartbeatIntervalS"]),
            "status": state(agent["status"]),
            "attention": state(agent["attentionState"]),
            "waiting": str(agent["mailboxDepth"]),
            "created": f"{moment(agent['createdAt'])} UTC",
            "changed": f"{moment(agent['changedAt'])} UTC",
            "position": agent["position"],
        }
    )
    version = Text(f"\npolicy, version {agent['policyVersion']}", style="bold")
    policy = facts({name: _value(value) for name, value in agent["policy"].items()})
    return Group(about, version, policy)


def agent_line(agent: Mapping[str, Any]) -> Text:
    """One agent in one line, after a command changed it."""
    line = Text.assemble(
        (plain(agent["id"]), "bold"), f" ({one_line(agent['name'])}) is ", state(agent["status"])
    )
    waiting = agent["mailboxDepth"]
    return line.append(f", {waiting} waiting") if waiting else line


def _seconds(seconds: float | None) -> str | None:
    return None if seconds is None else f"every {seconds:g} s"


def _value(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(_value(one) for one in value)
    if isinstance(value, float):
        return f"{value:g}" if abs(value) < 1_000_000 else str(value)
    return NONE if value is None else str(value)
