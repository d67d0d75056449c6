"""How a turn's end decides the fate of its item.

One function a kind of outcome; each answers the events of the agent's stream that go with
`turn.ended` in the same transaction.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from undivided.domain.agents import AGENT_STOPPED
from undivided.domain.attention import kind_of
from undivided.domain.decisions import Decision, DecisionType
from undivided.domain.events.catalogue import Event
from undivided.domain.events.items import (
    AgentIncomplete,
    ItemCancelled,
    ItemCompleted,
    ItemDeadLettered,
    ItemRequeued,
    NoticePosted,
    RequeueReason,
)
from undivided.domain.mailbox import GiveUp, Retry, after_setback, summary_of
from undivided.domain.outcomes import (
    EMPTY_REPLY,
    Cancelled,
    Completed,
    Failed,
    Incomplete,
    Interrupted,
    Outcome,
    TimedOut,
    outcome_name,
)
from undivided.domain.state.agent import AgentRow
from undivided.domain.state.item import ItemRow

OWNER = "owner"
"""Whom notices go to as long as nobody else is known."""


class Ending(Struct, frozen=True):
    """What ends: the item's turn, in which flight; with fresh names for what it may need."""

    turn_id: str
    epoch: int
    names: tuple[tuple[str, str], ...]
    """A decision id and a notice id for each item of the turn."""

    @property
    def decision_id(self) -> str:
        """The name of the decision about the item that the turn is about."""
        return self.names[0][0]

    @property
    def notice_id(self) -> str:
        """The name of the notice about it, should there be one."""
        return self.names[0][1]


FateEvent = ItemCompleted | ItemRequeued | ItemDeadLettered | ItemCancelled


class Fate(Struct, frozen=True):
    """What becomes of an item: events of the agent's stream, and a notice to people."""

    event: FateEvent
    notice: NoticePosted | None = None
    retry_now: bool = False
    also: tuple[Event, ...] = ()

    @property
    def item_id(self) -> str:
        """Whose fate it is."""
        return self.event.item_id

    @property
    def is_over(self) -> bool:
        """Whether the item is over with it."""
        return not isinstance(self.event, ItemRequeued)

    @property
    def events(self) -> tuple[Event, ...]:
        """What the agent's stream gets."""
        return (self.event, *self.also)


def fates_of(
    agent: AgentRow, items: tuple[ItemRow, ...], outcome: Outcome, ending: Ending
) -> tuple[Fate, ...]:
    """The fates of all items of a turn: siblings share that of the item it is about."""
    first = fate(agent, items[0], outcome, ending)
    rest = zip(items[1:], ending.names[1:], strict=True)
    return (first, *(_shared(first, item, names) for item, names in rest))


def _shared(first: Fate, item: ItemRow, names: tuple[str, str]) -> Fate:
    """The same fate for a sibling, with a decision of its own."""
    decision = replace(first.event.decision, id=names[0])
    event = replace(first.event, item_id=item.id, decision=decision)
    notice = None
    if first.notice is not None and isinstance(event, ItemDeadLettered):
        event = replace(event, notice_id=names[1])
        notice = replace(first.notice, notice_id=names[1], item_id=item.id)
    return _traced(Fate(event, notice, first.retry_now), item)


def fate(agent: AgentRow, item: ItemRow, outcome: Outcome, ending: Ending) -> Fate:
    """The item's fate after `outcome`."""
    return _traced(_fate(agent, item, outcome, ending), item)


def _traced(what: Fate, item: ItemRow) -> Fate:
    """`what`, with one trace of it if the item is over without a usable answer."""
    match what.event:
        case ItemCompleted(outcome=Incomplete() | TimedOut() as outcome, turn_id=turn_id):
            reason = _told(outcome)
        case ItemDeadLettered(reason=reason, turn_id=turn_id):
            pass
        case _:
            return what
    trace = AgentIncomplete(
        agent_id=item.agent_id, item_id=item.id, turn_id=turn_id, source_type=item.source_type,
        task_id=item.payload.task_id, reason=reason,
    )  # fmt: skip
    return replace(what, also=(*what.also, trace))


def _fate(agent: AgentRow, item: ItemRow, outcome: Outcome, ending: Ending) -> Fate:
    match outcome:
        case Completed():
            return _completed(agent, item, outcome, ending, "normal")
        case Incomplete(reason=reason):
            if reason != EMPTY_REPLY or kind_of(item).protected:
                return _completed(agent, item, outcome, ending, "incomplete")
            return _set_back(agent, item, outcome, ending, "empty_reply")
        case Cancelled(by=by):
            return _cancelled(agent, item, by, ending)
        case Failed(retryable=False):
            return _dead(agent, item, outcome, ending, outcome.reason)
        case Failed():
            return _set_back(agent, item, outcome, ending, "failed")
        case TimedOut():
            return _set_back(agent, item, outcome, ending, "timed_out")
        case Interrupted():
            return _set_back(agent, item, outcome, ending, "agent_stopped")


def stopped_outcome(by: str) -> Cancelled | Interrupted:
    """How a stop ends a turn: stopping the agent puts the item back, a person's stop ends it."""
    return Interrupted(by) if by == AGENT_STOPPED else Cancelled(by)


def _set_back(
    agent: AgentRow, item: ItemRow, outcome: Outcome, ending: Ending, reason: RequeueReason
) -> Fate:
    match after_setback(agent.policy, item.tries, reason):
        case Retry(wait_s=wait_s):
            decision = _decision(agent, item, ending, ("requeue", reason), outcome, wait_s=wait_s)
            event = ItemRequeued(
                agent_id=agent.id, item_id=item.id, turn_id=ending.turn_id,
                epoch=ending.epoch, reason=reason, wait_s=wait_s, decision=decision,
            )  # fmt: skip
            return Fate(event, retry_now=wait_s == 0)
        case GiveUp(rule=rule):
            if reason == "failed" or rule == "max_delivery_attempts":
                return _dead(agent, item, outcome, ending, rule)
            return _completed(agent, item, outcome, ending, rule)


def _completed(agent: AgentRow, item: ItemRow, outcome: Outcome, ending: Ending, rule: str) -> Fate:
    return Fate(
        ItemCompleted(
            agent_id=agent.id,
            item_id=item.id,
            turn_id=ending.turn_id,
            epoch=ending.epoch,
            outcome=outcome,
            decision=_decision(agent, item, ending, ("complete", rule), outcome),
        )
    )


def _cancelled(agent: AgentRow, item: ItemRow, by: str, ending: Ending) -> Fate:
    decision = Decision(
        ending.decision_id, "cancel", "stop_requested", f"stopped by {by}",
        {"by": by}, agent.policy_version,
    )  # fmt: skip
    event = ItemCancelled(
        agent_id=agent.id, item_id=item.id, turn_id=ending.turn_id, by=by, decision=decision
    )
    return Fate(event)


def _dead(agent: AgentRow, item: ItemRow, outcome: Outcome, ending: Ending, rule: str) -> Fate:
    notice = NoticePosted(
        notice_id=ending.notice_id, user_id=OWNER, agent_id=agent.id, item_id=item.id,
        kind="dead_letter",
        text=f"{agent.name} could not handle \"{summary_of(item.payload)[:120]}\" "
        f"after {item.tries.picked} attempts: {_told(outcome)}",
    )  # fmt: skip
    event = ItemDeadLettered(
        agent_id=agent.id, item_id=item.id, turn_id=ending.turn_id, epoch=ending.epoch,
        reason=_told(outcome), notice_id=notice.notice_id,
        decision=_decision(agent, item, ending, ("dead_letter", rule), outcome),
    )  # fmt: skip
    return Fate(event, notice)


def _decision(
    agent: AgentRow, item: ItemRow, ending: Ending, chosen: tuple[DecisionType, str],
    outcome: Outcome, wait_s: float = 0.0,
) -> Decision:  # fmt: skip
    return Decision(
        ending.decision_id,
        chosen[0],
        chosen[1],
        f"the turn was {outcome_name(outcome)}: {_told(outcome)[:200]}",
        {
            "outcome": outcome_name(outcome),
            "attempt": item.tries.picked,
            "emptyReplies": item.tries.empty_replies,
            "failures": item.tries.failures,
            "timeouts": item.tries.timeouts,
            "waitS": wait_s,
        },
        agent.policy_version,
    )


def _told(outcome: Outcome) -> str:
    match outcome:
        case Completed(reply=reply):
            return f"a reply of {len(reply)} characters"
        case Incomplete(reason=reason) | Interrupted(reason=reason):
            return reason
        case Cancelled(by=by):
            return f"stopped by {by}"
        case Failed(reason=reason, detail=detail):
            return f"{reason}: {detail}" if detail else reason
        case TimedOut(after_s=after_s):
            return f"no answer within {after_s:g} s"
