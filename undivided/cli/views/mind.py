"""A mind in a terminal: what an agent attends to, what waits, what it chose, what it remembers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from undivided.cli.views.cells import (
    facts,
    giving,
    heading,
    moment,
    one_line,
    pair,
    plain,
    state,
    table,
    time_and_day,
)
from undivided.cli.views.mailbox import LEAST, waiting

_SHOWN = 10
DECIDED = "item\nbecause"


def mind_view(mind: Mapping[str, Any]) -> RenderableType:
    """Attention first, then the queue, the newest decisions and working memory."""
    parts: list[RenderableType] = [_attention(mind)]
    queued = mind["queuedItems"]
    if queued:
        parts += [
            heading(f"waiting, next first ({mind['mailboxDepth']})"),
            waiting(queued[:_SHOWN]),
        ]
        hidden = mind["mailboxDepth"] - len(queued[:_SHOWN])
        if hidden > 0:
            parts.append(Text(f"and {hidden} more: undivided mailbox AGENT", style="dim"))
    if mind["deferredItems"]:
        parts += [heading("deferred"), waiting(mind["deferredItems"])]
    if mind["recentDecisions"]:
        parts += [heading("decided lately"), _decisions(mind["recentDecisions"])]
    if mind["workingMemory"]:
        parts += [heading("working memory"), _memory(mind["workingMemory"])]
    return Group(*parts)


def _attention(mind: Mapping[str, Any]) -> RenderableType:
    focus, suspension, flight = mind["currentFocus"], mind.get("suspension"), mind.get("flight")
    attention = state(mind["attentionState"])
    if mind["status"] != "started":
        attention.append(", agent is ").append_text(state(mind["status"]))
    return facts(
        {
            "attention": attention,
            "focus": _focus(focus) if focus else "nothing",
            "waits for": _suspension(suspension) if suspension else None,
            "worker": f"{flight['worker']}, epoch {flight['epoch']}" if flight else None,
            "waiting": str(mind["mailboxDepth"]),
            "position": mind["position"],
        }
    )


def _focus(focus: Mapping[str, Any]) -> Text:
    return Text(
        f"{plain(focus['label'])}: {one_line(focus['summary'])}\n"
        f"{focus['mailboxItemId']} since {moment(focus['startedAt'])} UTC\n"
        f"{focus['turnId']} in session {focus['sessionId']}"
    )


def _suspension(waits: Mapping[str, Any]) -> Text:
    return Text(
        f"{plain(waits['kind'])}, since {moment(waits['since'])}, "
        f"until {moment(waits['until'])} UTC at the latest"
    )


def _decisions(decisions: Sequence[Mapping[str, Any]]) -> RenderableType:
    listed = table(DECIDED, "decision\nrule", "when\n(UTC)", giving=(DECIDED,), least=LEAST)
    for decision in decisions:
        listed.add_row(
            giving(decision["mailboxItemId"], decision["reasoning"]),
            pair(decision["decisionType"], decision["rule"]),
            time_and_day(decision["createdAt"]),
        )
    return listed


def _memory(entries: Sequence[Mapping[str, Any]]) -> RenderableType:
    return facts({one_line(entry["key"]): plain(entry["content"]) for entry in entries})
