"""What a ruling about a waiting item is recorded as."""

from __future__ import annotations

from msgspec import Struct

from undivided.domain.decisions import Decision, DecisionType
from undivided.domain.events.items import ItemDeferred, ItemMerged, ItemWeighed
from undivided.domain.interrupts import Weighing
from undivided.domain.mailbox import summary_of
from undivided.domain.merging import marks_brought
from undivided.domain.state.agent import AgentRow
from undivided.domain.state.item import ItemRow

LOSERS_NAMED = 10


class At(Struct, frozen=True):
    """Where a ruling was made: the turn at work, its session, its flight."""

    turn_id: str
    session_id: str
    epoch: int


def weighed(
    agent: AgentRow, at: At, candidate: ItemRow, weighing: Weighing, decision_id: str
) -> ItemWeighed:
    """The candidate was weighed; its decision says what was ruled."""
    return ItemWeighed(
        agent_id=agent.id, item_id=candidate.id, turn_id=at.turn_id, epoch=at.epoch,
        merged=candidate.merged,
        decision=_decision(agent, weighing, weighing.ruling.verdict, (decision_id, candidate)),
    )  # fmt: skip


def merged(
    agent: AgentRow, at: At, candidate: ItemRow, weighing: Weighing, into: tuple[ItemRow, str]
) -> ItemMerged:
    """The candidate went into the running turn; `into` is its item and a decision's name."""
    focus, decision_id = into
    return ItemMerged(
        agent_id=agent.id, item_id=candidate.id, into=focus.id, turn_id=at.turn_id,
        priority=min(focus.priority, candidate.priority),
        marks=marks_brought(focus.payload, candidate.payload),
        requirement_id=None if focus.payload.requirement_id else candidate.payload.requirement_id,
        items=candidate.merged + 1,
        characters=len(candidate.payload.content) + candidate.merged_chars,
        decision=_decision(agent, weighing, "merge", (decision_id, candidate)),
    )  # fmt: skip


def put_off(
    agent: AgentRow, at: At, candidate: ItemRow, weighing: Weighing, decision_id: str
) -> ItemDeferred:
    """The candidate waits until the agent is idle."""
    return ItemDeferred(
        agent_id=agent.id, item_id=candidate.id, epoch=at.epoch, by="judge",
        decision=_decision(agent, weighing, "defer", (decision_id, candidate)),
    )  # fmt: skip


def set_aside(
    agent: AgentRow, at: At, focus: tuple[tuple[ItemRow, ...], tuple[str, ...]],
    weighing: Weighing, wait_s: float | None = None,
) -> tuple[ItemDeferred, ...]:  # fmt: skip
    """The items of the turn are put off until the candidate is over, and keep their turn.

    With `wait_s` the turn waits for something itself: it comes back when it has that, or then.
    """
    return tuple(
        ItemDeferred(
            agent_id=agent.id, item_id=item.id, epoch=at.epoch, by="preempted",
            behind=weighing.candidate.id if wait_s is None else None, wait_s=wait_s,
            waits=wait_s is not None, turn_id=at.turn_id, session_id=at.session_id,
            decision=_decision(agent, weighing, "preempt", (name, item)),
        )
        for item, name in zip(*focus, strict=True)
    )  # fmt: skip


def _decision(
    agent: AgentRow, weighing: Weighing, kind: DecisionType, about: tuple[str, ItemRow]
) -> Decision:
    new, rule = weighing.candidate, weighing.ruling.rule
    return Decision(
        about[0],
        kind,
        rule,
        f'{kind} by {rule}, on "{summary_of(new.payload)[:80]}" ({new.source_type}, '
        f"priority {new.priority})",
        {
            "candidate": new.id,
            "candidateType": new.source_type,
            "candidatePriority": new.priority,
            "candidateMerged": new.merged,
            "senderId": new.sender.id,
            "waiting": agent.waiting,
        },
        agent.policy_version,
        tuple(other.id for other in weighing.others[:LOSERS_NAMED]),
    )
