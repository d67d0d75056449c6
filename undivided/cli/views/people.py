"""What agents ask people, in a terminal: all requests in a table, one of them whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from undivided.cli.views.cells import facts, giving, moment, more, one_line, state, table

NOTHING = "Nobody is asked anything."


def approvals_view(page: Mapping[str, Any]) -> RenderableType:
    """A page of requests for approval."""
    if not page["items"]:
        return Text(NOTHING)
    listed = table("id", "agent", "asked", "what", "options", "status", giving=("what", "options"))
    for one in page["items"]:
        listed.add_row(
            one["id"],
            one_line(one["agentId"]),
            moment(one["createdAt"]),
            giving(one["title"], one["description"]),
            giving(", ".join(option["id"] for option in one["options"])),
            state(one["status"]),
        )
    return Group(listed, *more(page))


def approval_view(one: Mapping[str, Any]) -> RenderableType:
    """One request, and what was answered."""
    said = one["comment"]
    return facts(
        {
            "id": one["id"],
            "agent": one["agentId"],
            "asked": f"{moment(one['createdAt'])} UTC, of {one['userId']}",
            "what": one["title"],
            "about": one["description"],
            "options": "\n".join(_option(option) for option in one["options"]),
            "expires": None if one["expiresAt"] is None else f"{moment(one['expiresAt'])} UTC",
            "status": state(one["status"]),
            "chosen": one["selectedOption"] or None,
            "comment": said or None,
            "answered": _answered(one),
        }
    )


def _option(option: Mapping[str, Any]) -> str:
    about = f": {option['description']}" if option["description"] else ""
    return f"{option['id']} ({option['label']}){about}"


def _answered(one: Mapping[str, Any]) -> str | None:
    if one["respondedAt"] is None:
        return None
    return f"{moment(one['respondedAt'])} UTC, by {one['respondedBy']}"
