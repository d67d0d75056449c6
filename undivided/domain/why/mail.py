"""What became of an item in its mailbox, and what was preferred to it, sentence by sentence."""

from __future__ import annotations

from typing import assert_never

from undivided.domain.decisions import Decision
from undivided.domain.events import flights as f
from undivided.domain.events import items as i
from undivided.domain.state.item import ItemRow
from undivided.domain.stimuli import REGISTRY
from undivided.domain.why.line import Line, decision_of
from undivided.domain.why.turns import outcome_in_words
from undivided.domain.why.words import (
    because,
    kind_in_words,
    listed,
    lowered,
    one_line,
    priority_in_words,
    quoted,
    sender_in_words,
    span,
    told_by,
)

MailEvent = (
    i.StimulusAccepted | i.ItemPicked | i.ItemCompleted | i.ItemRequeued | i.ItemDeadLettered
    | i.ItemCancelled | i.ItemMerged | i.ItemDeferred | i.ItemResurfaced | i.ItemResumed
    | i.ItemDropped | i.ItemExpired | i.ItemReprioritized | i.ItemWeighed | f.FocusAnswered
    | f.StopRequested
)  # fmt: skip
"""What happens to items on the stream of their agent."""

_REQUEUED = {
    "empty_reply": "the reply was empty",
    "failed": "the turn failed",
    "timed_out": "the turn gave no answer in time",
    "agent_stopped": "its agent was stopped",
    "left_behind": "a check found that its turn was over without it",
}
_PUT_OFF_BY = {
    "preempted": "another item",
    "agent": "its agent",
    "deliberation": "a deliberation",
    "judge": "the judge",
    "person": "a person",
}
_RESURFACED = {
    "due": "its time had come",
    "idle": "its agent had nothing else to do",
    "preemptor_done": "what it was set aside for is over",
    "answered": "what its turn waited for had come",
    "person": "a person asked for it",
}


def line_of(event: MailEvent, item: ItemRow) -> Line:
    """The sentence about an event of an item, or of another to which it was compared."""
    if isinstance(event, i.ItemMerged) and event.into == item.id:
        return _joined_by(event)
    other = getattr(event, "item_id", None)
    made = decision_of(event)
    if made is not None and other is not None and other != item.id:
        return _beside(event, made, item, str(other))
    return _own(event)


def _own(event: MailEvent) -> Line:
    match event:
        case i.StimulusAccepted():
            return Line("accepted", _accepted(event))
        case i.ItemPicked():
            return Line("picked", _picked(event))
        case i.ItemResumed(decision=made):
            return Line("resumed", "Its turn goes on from its last step, with no step done twice"
                        f"{_over(made)}.")  # fmt: skip
        case i.ItemWeighed():
            return _weighed(event)
        case i.ItemMerged():
            return Line("merged", _merged(event))
        case i.ItemDeferred():
            return _deferred(event)
        case i.ItemResurfaced(cause=cause):
            return Line("resurfaced", f"It waits again: {_RESURFACED[cause]}.")
        case i.ItemReprioritized(priority=priority, by=by):
            level = priority_in_words(priority)
            return Line("reprioritized", f"{one_line(by)} gave it priority {level}.")
        case f.FocusAnswered():
            return Line("answered", "What its turn waited for has come.")
        case f.StopRequested(by=by):
            return Line("stop_requested", f"{one_line(by)} asked its turn to stop.")
        case _:
            return _ended(event)


def _ended(
    event: i.ItemCompleted
    | i.ItemRequeued
    | i.ItemDeadLettered
    | i.ItemCancelled
    | i.ItemDropped
    | i.ItemExpired,
) -> Line:
    match event:
        case i.ItemCompleted(outcome=outcome):
            return Line("completed", f"It is over: {outcome_in_words(outcome)}.")
        case i.ItemRequeued(reason=reason, wait_s=wait_s):
            when = f", for {span(wait_s)} at least" if wait_s > 0 else " at once"
            return Line("requeued", f"It waits again{when}: {_REQUEUED[reason]}.")
        case i.ItemDeadLettered(reason=reason, decision=made):
            text = (
                f"It was given up, {because(made)}. The last reason was: {one_line(reason)}. "
                f"People were told once, in {event.notice_id}."
            )
            return Line("dead_letter", text)
        case i.ItemExpired(decision=made):
            text = (
                f"Nobody got to it in time, and it was given up, {because(made)}. "
                f"People were told once, in {event.notice_id}."
            )
            return Line("dead_letter", text)
        case i.ItemCancelled(by=by):
            return Line("cancelled", f"It was cancelled by {one_line(by)}.")
        case i.ItemDropped(reason=reason):
            return Line(
                "dropped", f"It was discarded without having been handled: {one_line(reason)}."
            )
        case _:
            assert_never(event)


def _accepted(event: i.StimulusAccepted) -> str:
    what, whom = kind_in_words(event.source_type), sender_in_words(event.sender)
    text = (
        f"{event.agent_id} received {what} from {whom}: {told_by(event.payload)}. "
        f"It has priority {priority_in_words(event.priority)}, {_why_priority(event)}."
    )
    if event.delivery == "steer":
        text += " It was sent to steer the turn at work."
    if event.held_s > 0:
        text += f" It was held back for {span(event.held_s)}, so that others could join it."
    return text


def _why_priority(event: i.StimulusAccepted) -> str:
    known = REGISTRY.get(event.source_type)
    if known is None:
        return "as it was sent"
    if event.priority == known.priority:
        return f"which is what {kind_in_words(event.source_type)} has"
    if event.priority == 0 and event.sender.role == "user":
        return f"for a person wrote it; by itself its type has {known.priority}"
    return f"as its sender asked; by itself its type has {known.priority}"


def _picked(event: i.ItemPicked) -> str:
    again = f", for the {_nth(event.attempt)} time" if event.attempt > 1 else ""
    made = event.decision
    return f"{event.agent_id} turned to it{again}, {because(made)}{_over(made)}."


def _over(made: Decision) -> str:
    return f"; {listed(made.losers)} had to wait" if made.losers else ""


def _nth(number: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{'th' if number % 100 in (11, 12, 13) else ending}"


def _merged(event: i.ItemMerged) -> str:
    how = because(event.decision)
    if event.turn_id is not None:
        return f"It went into the turn at work on {event.into}, {how}."
    return f"It joined {event.into} and is handled together with it, {how}."


def _joined_by(event: i.ItemMerged) -> Line:
    level = priority_in_words(event.priority)
    if event.turn_id is not None:
        how = because(event.decision)
        return Line("joined", f"{event.item_id} went into its turn at work, {how}.")
    return Line("joined", f"{event.item_id} joined it; its priority is {level} from here on.")


def _weighed(event: i.ItemWeighed) -> Line:
    made = event.decision
    match made.type:
        case "preempt":
            came = "the turn was set aside for it"
        case "cancel":
            came = "the turn was to end for it"
        case _:
            came = "it was left waiting"
    return Line("weighed", f"It was weighed against the turn at work, and {came}, {because(made)}.")


def _deferred(event: i.ItemDeferred) -> Line:
    how = because(event.decision)
    if event.by != "preempted":
        until = f"for {span(event.wait_s)}" if event.wait_s else "until its agent is idle"
        whom = _PUT_OFF_BY[event.by]
        return Line("deferred", f"It was put off {until} by {whom}, {how}.")
    behind = event.behind or str(event.decision.inputs.get("candidate") or "another item")
    back = "when it has what it waits for" if event.waits else f"once {behind} is over"
    text = f"It was set aside for {behind}, {how}. Its turn goes on from its last step {back}."
    return Line("preempted", text)


def _beside(event: MailEvent, made: Decision, item: ItemRow, other: str) -> Line:
    """About another item, to which this one was compared."""
    if isinstance(event, i.ItemDeferred) and made.inputs.get("candidate") == item.id:
        return Line(
            "preempts", f"{other}, which was at work, was set aside for it, {because(made)}."
        )
    if isinstance(event, i.ItemPicked | i.ItemResumed):
        summary, priority = made.inputs.get("summary"), made.inputs.get("priority")
        what = f"{quoted(str(summary))} ({other})" if summary else other
        level = f", which has priority {priority}," if priority is not None else ""
        how = lowered(one_line(made.reasoning))
        return Line(
            "passed_over",
            f"{what}{level} was picked instead, by rule {one_line(made.rule)}: {how}.",
        )
    return Line("passed_over", f"{other} was looked at before it, {because(made)}.")
