"""A mailbox in a terminal: what waits, and what became of what came before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from undivided.cli.views.cells import (
    heading,
    moment,
    more,
    one_line,
    priority,
    state,
    table,
    took,
)


def mailbox_view(box: Mapping[str, Any]) -> RenderableType:
    """What waits, best first, then the history, newest first."""
    parts: list[RenderableType] = [_counts(box["statusCounts"])]
    if box["queued"]:
        parts += [heading(f"waiting, next first ({box['queueDepth']})"), waiting(box["queued"])]
    past = [item for item in box["history"] if item["status"] != "queued"]
    if past:
        parts += [heading("history, newest first"), _history(past)]
    return Group(*parts, *more(box))


def mailbox_chosen_view(box: Mapping[str, Any]) -> RenderableType:
    """Only the items that were asked for, newest first."""
    items = box["history"]
    return Group(_history(items) if items else Text("No such item."), *more(box))


def waiting(items: Sequence[Mapping[str, Any]]) -> RenderableType:
    """Items that wait, in the order in which they will be picked."""
    listed = table(
        "item", "type", "priority", "since (UTC)", "tries", "summary",
        ids=("item",), texts=("summary",),
    )  # fmt: skip
    for item in items:
        later = item.get("notBefore")
        since = moment(item["queuedAt"]) + (f", not before {moment(later)}" if later else "")
        listed.add_row(
            item["id"],
            one_line(item["sourceType"]),
            priority(item["priority"]),
            since,
            str(item["attempts"]),
            one_line(item["summary"]),
        )
    return listed


def _history(items: Sequence[Mapping[str, Any]]) -> RenderableType:
    listed = table(
        "item", "type", "priority", "status", "arrived (UTC)", "waited", "took", "tries", "summary",
        ids=("item",), texts=("summary",),
    )  # fmt: skip
    for item in items:
        listed.add_row(
            item["id"],
            one_line(item["sourceType"]),
            priority(item["priority"]),
            _fate(item),
            moment(item["queuedAt"]),
            took(item["queuedAt"], item["startedAt"]),
            took(item["startedAt"], item["completedAt"]),
            str(item["attempts"]),
            one_line(item["summary"]),
        )
    return listed


def _fate(item: Mapping[str, Any]) -> Text:
    status = state(item["status"])
    if into := item.get("mergedInto"):
        return status.append(f" into {into}")
    outcome = (item.get("activity") or {}).get("outcome")
    return status.append(f" ({outcome})") if outcome and outcome != item["status"] else status


def _counts(counts: Mapping[str, int]) -> Text:
    line = Text(", ").join(
        Text.assemble(f"{number} ", state(status)) for status, number in counts.items() if number
    )
    return line or Text("Nothing has come to this mailbox yet.")
