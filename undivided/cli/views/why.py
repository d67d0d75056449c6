"""An item's story in a terminal: when, and what happened, one sentence after the other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from undivided.cli.views.cells import one_line, plain, state


def why_view(story: Mapping[str, Any]) -> RenderableType:
    """The item and how it stands, then its sentences in order."""
    head = Text.assemble((plain(story["itemId"]), "bold"), " of ", plain(story["agentId"]), ": ")
    head.append_text(state(story["status"]))
    outcome = story.get("outcome")
    if outcome and outcome != story["status"]:
        head.append(f" ({one_line(outcome)})")
    told = Table.grid(padding=(0, 2))
    told.add_column(no_wrap=True, style="dim")
    told.add_column(overflow="fold")
    day = ""
    for sentence in story["sentences"]:
        at = sentence["at"]
        when = at[11:23] if at[:10] == day else f"{at[:10]} {at[11:23]}"
        day = at[:10]
        told.add_row(Text(when, justify="right"), one_line(sentence["text"]))
    return Group(head, told)
