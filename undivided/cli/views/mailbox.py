"""A mailbox in a terminal: what waits, and what became of what came before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from undivided.cli.views.cells import (
    giving,
    heading,
    more,
    pair,
    priority,
    state,
    table,
    time_and_day,
    took,
)

ITEM, KIND = "item\nsummary", "type\npriority"
LEAST = 30
"""Columns that an id needs."""


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
    listed = table(ITEM, KIND, "status\ntries", "since\n(UTC)", giving=(ITEM,), least=LEAST)
    for item in items:
        tried = pair(_waits(item), _tries(item["attempts"]))
        listed.add_row(*_what(item), tried, time_and_day(item["queuedAt"]))
    return listed


def _history(items: Sequence[Mapping[str, Any]]) -> RenderableType:
    listed = table(ITEM, KIND, "status\ntook", "arrived\n(UTC)", giving=(ITEM,), least=LEAST)
    for item in items:
        again = _tries(item["attempts"]) if item["attempts"] > 1 else ""
        spent = ", ".join(filter(None, (took(item["startedAt"], item["completedAt"]), again)))
        listed.add_row(*_what(item), pair(_fate(item), spent), time_and_day(item["queuedAt"]))
    return listed


def _what(item: Mapping[str, Any]) -> tuple[Text, Text]:
    return giving(item["id"], item["summary"]), pair(item["sourceType"], priority(item["priority"]))


def _waits(item: Mapping[str, Any]) -> Text:
    later = item.get("notBefore") or item.get("deferredUntil")
    return state(item["status"]).append(f" until {later[11:19]}" if later else "")


def _tries(number: int) -> str:
    return f"{number} tries" if number > 1 else "1 try" if number else ""


def _fate(item: Mapping[str, Any]) -> Text:
    status = state(item["status"])
    outcome = (item.get("activity") or {}).get("outcome")
    if into := item.get("mergedInto"):
        status.append(f" into {into}")
    if later := item.get("deferredUntil"):
        status.append(f" until {later[11:19]}")
    return status.append(f" ({outcome})") if outcome and outcome != item["status"] else status


def _counts(counts: Mapping[str, int]) -> Text:
    line = Text(", ").join(
        Text.assemble(f"{number} ", state(status)) for status, number in counts.items() if number
    )
    return line or Text("Nothing has come to this mailbox yet.")
