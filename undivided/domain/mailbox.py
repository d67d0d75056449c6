"""The mailbox: what is accepted, what is next, and what becomes of an item afterwards.

Pure functions over an agent's row; what gets the focus is decided in `attention.py`.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from undivided.domain.decisions import Decision
from undivided.domain.errors import Full, Invalid, NotFound, TooLarge
from undivided.domain.events.items import (
    Delivery,
    ItemRequeued,
    Payload,
    RequeueReason,
    Sender,
    StimulusAccepted,
)
from undivided.domain.merging import Told, joined_events, merge_key
from undivided.domain.policy import Policy
from undivided.domain.state.agent import AgentRow
from undivided.domain.state.item import ItemRow, Tries
from undivided.domain.stimuli import MENTION, StimulusType, stimulus_type

CONTENT_LIMIT = 1_000_000
"""Characters of one stimulus's content, at most."""
SUMMARY_CUT = 100
NOBODY: Mapping[str, ItemRow] = {}


class Accept(Struct, frozen=True, kw_only=True):
    """Put a stimulus into the mailbox; `priority` overrides the type's own."""

    item_id: str
    source_type: str
    payload: Payload
    sender: Sender = Sender()
    priority: int | None = None
    delivery: Delivery = "queue"
    session_id: str | None = None


def accept(
    agent: AgentRow, commands: tuple[Accept, ...], waiting: Mapping[str, ItemRow] = NOBODY
) -> tuple[Told, ...]:
    """Accept all of `commands` in their order, or none; what can join what waits does.

    `waiting` are the items that can be joined, by their keys (see `merging.py`). What joins
    takes no room, so that a full mailbox still takes it.

    Raises:
        NotFound: the agent was deleted.
        Invalid, TooLarge: a stimulus that cannot be.
        Full: the mailbox has no room for all of them.
    """
    if agent.lifecycle == "deleted":
        raise NotFound(f"agent {agent.id} was deleted")
    accepted = tuple(
        _accepted(agent, command, agent.next_seq + n) for n, command in enumerate(commands)
    )
    told = joined_events(accepted, waiting, agent.policy_version)
    leaving = len(told) - len(accepted)
    more = len(accepted) - leaving
    if more > 0 and more > agent.policy.mailbox_capacity - agent.waiting:
        raise Full(
            f"the mailbox of agent {agent.id} holds {agent.waiting} of at most "
            f"{agent.policy.mailbox_capacity} waiting items; retry when it has worked some off",
            retry_after_s=5,
        )
    return told


def _accepted(agent: AgentRow, command: Accept, seq: int) -> StimulusAccepted:
    kind = stimulus_type(command.source_type)
    content = command.payload.content
    if len(content) > CONTENT_LIMIT:
        raise TooLarge(
            f"content has {len(content)} characters, at most {CONTENT_LIMIT} are taken", "content"
        )
    priority = _priority_of(kind, command.sender) if command.priority is None else command.priority
    if not 0 <= priority <= 4:
        raise Invalid(f"priority must be between 0 and 4, got {priority}", "priority")
    return StimulusAccepted(
        agent_id=agent.id,
        item_id=command.item_id,
        seq=seq,
        source_type=kind.name,
        priority=priority,
        payload=command.payload,
        sender=command.sender,
        delivery=command.delivery,
        session_id=command.session_id,
        held_s=_held_s(agent.policy, command),
    )


def _priority_of(kind: StimulusType, sender: Sender) -> int:
    """The type's own; what a person says about a task or requirement is critical."""
    by_person = sender.role == "user" and (kind.name == MENTION or kind.is_comment)
    return 0 if by_person else kind.priority


def _held_s(policy: Policy, command: Accept) -> float:
    """How long others can join it before it is picked."""
    joins = stimulus_type(command.source_type).merges_by is not None
    if not joins or merge_key(command) is None:
        return 0.0
    return policy.coalesce_window_ms / 1000


def summary_of(payload: Payload) -> str:
    """One line about a payload: its own summary, or the beginning of its content."""
    return payload.summary or payload.content[:SUMMARY_CUT]


class Retry(Struct, frozen=True):
    """The item waits again, `wait_s` seconds at least."""

    wait_s: float


class GiveUp(Struct, frozen=True):
    """The item is over; `rule` says which bound was reached."""

    rule: str


def after_setback(policy: Policy, tries: Tries, reason: RequeueReason) -> Retry | GiveUp:
    """Whether an item is tried again after one more setback of this kind.

    Every kind has a bound of its own, so that a stop does not use up a model's retries;
    `max_delivery_attempts` bounds them all together.
    """
    if reason == "agent_stopped" or reason == "left_behind":
        return Retry(0)
    setbacks = tries.empty_replies + tries.failures + tries.timeouts
    if setbacks + 1 >= policy.max_delivery_attempts:
        return GiveUp("max_delivery_attempts")
    match reason:
        case "empty_reply":
            if tries.empty_replies >= policy.item_max_retries:
                return GiveUp("item_max_retries")
            return Retry(0)
        case "timed_out":
            if tries.timeouts >= policy.timeout_max_retries:
                return GiveUp("timeout_max_retries")
            return Retry(0)
        case "failed":
            steps = policy.retry_backoff_s
            return Retry(steps[min(tries.failures, len(steps) - 1)])


def requeue(item: ItemRow, reason: RequeueReason, flight: tuple[str, int], decision: Decision,
            wait_s: float) -> ItemRequeued:  # fmt: skip
    """The event that puts an item back at its own place; `flight` is (turn id, epoch)."""
    return ItemRequeued(
        agent_id=item.agent_id,
        item_id=item.id,
        turn_id=flight[0],
        epoch=flight[1],
        reason=reason,
        wait_s=wait_s,
        decision=decision,
    )
