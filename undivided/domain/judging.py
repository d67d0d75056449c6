"""The interrupt judge: one word about what a message means for the work under way.

Rules compare types and priorities; that "stop publishing" revokes the work and "hold off" only
pauses it, a model has to read. It is asked only where the rules say `continue`.
"""

from __future__ import annotations

from msgspec import Struct

from undivided.domain.interrupts import Verdict
from undivided.domain.state.item import ItemRow
from undivided.domain.state.session import DecisionRow

CURRENT_CUT = 500
NEW_CUT = 800
LINE_CUT = 120
DECISIONS_TOLD = 5

INSTRUCTIONS = """You decide whether an agent goes on with its work when something new arrives.
Answer with exactly one word:
continue - the new message can wait until the work is done
preempt - the work is paused for the message and goes on afterwards ("hold off", "pause")
cancel - the message revokes or contradicts the work for good ("stop", "don't do it")
merge - the message adds to the very thing that the work is about
defer - the message is for later, when there is nothing else to do"""


class JudgedPair(Struct, frozen=True):
    """What the judge is shown."""

    focus: ItemRow
    new: ItemRow
    queue: tuple[ItemRow, ...]
    decisions: tuple[DecisionRow, ...]


def judge_prompt(shown: JudgedPair) -> str:
    """The focus, the message, all that waits, and what was decided lately."""
    focus, new = shown.focus, shown.new
    lines = [
        "## Current work",
        f"type {focus.source_type}, priority {focus.priority}{_task(focus)}",
        focus.payload.content[:CURRENT_CUT],
        "## New message",
        f"type {new.source_type}, priority {new.priority}{_task(new)}",
        new.payload.content[:NEW_CUT],
        "## Everything that waits",
        *(_line(item) for item in shown.queue),
        "## Recent decisions",
        *(f"- {one.type} ({one.rule}): {one.reasoning}" for one in shown.decisions),
        "Your one word:",
    ]
    return "\n".join(lines)


def _task(item: ItemRow) -> str:
    return f", task {item.payload.task_id}" if item.payload.task_id else ""


def _line(item: ItemRow) -> str:
    text = item.payload.summary or item.payload.content
    return f"- {item.id} {item.source_type} p{item.priority}: {text[:LINE_CUT]}"


def verdict(text: str) -> Verdict:
    """The judge's word; anything else means `continue`."""
    match text.strip().lower():
        case "preempt":
            return "preempt"
        case "cancel":
            return "cancel"
        case "merge":
            return "merge"
        case "defer":
            return "defer"
        case _:
            return "continue"
