"""What its turns did, as an item's story tells it."""

from __future__ import annotations

from typing import assert_never

from undivided.domain.events import sessions as s
from undivided.domain.outcomes import (
    Cancelled,
    Completed,
    Failed,
    Incomplete,
    Interrupted,
    Outcome,
    TimedOut,
)
from undivided.domain.state.item import ItemRow
from undivided.domain.waits import Approval, Sleep, Wait
from undivided.domain.why.line import Deeds, Line
from undivided.domain.why.words import counted, listed, one_line, quoted, span

TurnEvent = (
    s.TurnStarted | s.TurnSuspended | s.TurnResumed | s.TurnYielded | s.TurnUpdated
    | s.TurnNudged | s.TurnEnded
)  # fmt: skip
"""What is told of a turn; its responses and calls are told as `Deeds`."""

NUDGES = {
    "marker_missing": "its reply did not say that it was finished",
    "no_comment": "it had answered nobody",
    "no_action": "it had taken no action",
    "items_forgotten": "it had not said what becomes of every item",
}


def line_of(event: TurnEvent, item: ItemRow, deeds: Deeds) -> Line | None:
    """The sentence about a step of a turn; None where the item's own events say it."""
    match event:
        case s.TurnStarted():
            return Line("turn_started", _started(event, item))
        case s.TurnSuspended(wait=wait):
            return Line("turn_suspended", f"The turn waits for {_wait(wait)}, and holds no worker.")
        case s.TurnResumed():
            return _resumed(event)
        case s.TurnYielded():
            return Line("turn_yielded", "Its worker left; another goes on from the last step.")
        case s.TurnUpdated():
            what = "it" if event.item_id == item.id else f"what {event.item_id} says"
            return Line("turn_updated", f"The turn at work was told {what} as a live update.")
        case s.TurnNudged(reason=reason):
            return Line("turn_nudged", f"The turn was asked once to go on: {NUDGES[reason]}.")
        case s.TurnEnded(outcome=outcome):
            done = deeds_in_words(Deeds(event.responses, deeds.tools), event.tool_calls)
            text = f"Turn {event.turn_id} ended after {done}: {outcome_in_words(outcome)}."
            return Line("turn_ended", text)
        case _:
            assert_never(event)


def _started(event: s.TurnStarted, item: ItemRow) -> str:
    others = [other for other in event.item_ids if other != item.id]
    shared = f", together with {listed(others)}" if others else ""
    return f"Turn {event.turn_id} ({event.scenario}) began in session {event.session_id}{shared}."


def _resumed(event: s.TurnResumed) -> Line | None:
    match event.cause:
        case "orphaned":
            why = "its worker was lost"
        case "yielded":
            why = "another worker took it over"
        case "waited":
            why = "the wait was over"
        case "woken":
            why = "something new had arrived"
        case "answered":
            why = "what it waited for had come"
        case "stopped":
            why = "it was asked to stop"
        case "preempted":
            return None
        case _:
            assert_never(event.cause)
    return Line("turn_resumed", f"The turn went on from its last step: {why}.")


def _wait(wait: Wait) -> str:
    match wait:
        case Sleep(seconds=seconds):
            return f"{span(seconds)} to pass"
        case Approval(approval_id=approval_id):
            return f"a person's answer to {approval_id}"
        case _:
            assert_never(wait)


def deeds_in_words(deeds: Deeds, calls: int | None = None) -> str:
    """So many responses and tool calls, with the names of the tools."""
    said = counted(deeds.responses, "response")
    calls = sum(times for _, times in deeds.tools) if calls is None else calls
    if not calls:
        return said
    names = listed(
        f"{name} {times} times" if times > 1 else name
        for name, times in ((one_line(name, 40), times) for name, times in deeds.tools)
    )
    named = f" ({names})" if names else ""
    return f"{said} and {counted(calls, 'tool call')}{named}"


def outcome_in_words(outcome: Outcome) -> str:
    """How a turn ended."""
    match outcome:
        case Completed(reply=reply):
            return f"it answered {quoted(reply)}" if reply else "it had nothing to say"
        case Incomplete(reason=reason):
            return f"it is incomplete, {one_line(reason)}"
        case Cancelled(by=by):
            return f"it was stopped by {one_line(by)}"
        case Failed(reason=reason, detail=detail):
            return f"it failed, {one_line(f'{reason}: {detail}' if detail else reason)}"
        case TimedOut(after_s=after_s):
            return f"it gave no answer within {span(after_s)}"
        case Interrupted(reason=reason):
            return f"it was broken off, {one_line(reason)}"
        case _:
            assert_never(outcome)
