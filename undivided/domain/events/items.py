"""Events of the mailbox: what became of each stimulus; stream `agent:<id>`."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import field

from undivided.domain.decisions import Decision
from undivided.domain.outcomes import Outcome
from undivided.domain.stimuli import SenderRole
from undivided.domain.value import Value

Delivery = Literal["queue", "steer"]
RequeueReason = Literal["empty_reply", "failed", "timed_out", "agent_stopped", "left_behind"]
"""Why an item waits again; `left_behind`: a check found it in a turn that was over."""


class Payload(Value, frozen=True, omit_defaults=True):
    """What a stimulus says; `extra` is the producer's own."""

    content: str
    summary: str = ""
    task_id: str | None = None
    requirement_id: str | None = None
    extra: dict[str, Any] = field(default_factory=dict)


class Sender(Value, frozen=True, omit_defaults=True):
    """Who sent a stimulus, as far as is known."""

    id: str | None = None
    name: str | None = None
    role: SenderRole = "system"


class StimulusAccepted(Value, frozen=True, kw_only=True):
    """A stimulus is in the mailbox; `seq` is its place within its priority, for ever."""

    agent_id: str
    item_id: str
    seq: int
    source_type: str
    priority: int
    payload: Payload
    sender: Sender
    delivery: Delivery
    session_id: str | None = None


class ItemPicked(Value, frozen=True, kw_only=True):
    """Attention turned to an item: it is now the focus of `turn_id`."""

    agent_id: str
    item_id: str
    turn_id: str
    session_id: str
    epoch: int
    attempt: int
    decision: Decision


class ItemCompleted(Value, frozen=True, kw_only=True):
    """The turn that contained the item ended; written in that very transaction."""

    agent_id: str
    item_id: str
    turn_id: str
    epoch: int
    outcome: Outcome
    decision: Decision


class ItemRequeued(Value, frozen=True, kw_only=True):
    """The item waits again at its old place, not before `wait_s` seconds have passed."""

    agent_id: str
    item_id: str
    turn_id: str
    epoch: int
    reason: RequeueReason
    wait_s: float
    decision: Decision


class ItemDeadLettered(Value, frozen=True, kw_only=True):
    """The item is given up: its attempts are used up, or no attempt can help."""

    agent_id: str
    item_id: str
    turn_id: str
    epoch: int
    reason: str
    notice_id: str
    decision: Decision


class ItemCancelled(Value, frozen=True, kw_only=True):
    """The item is over without having been handled; `turn_id` where it was in a turn."""

    agent_id: str
    item_id: str
    turn_id: str | None
    by: str
    decision: Decision


class NoticePosted(Value, frozen=True, kw_only=True):
    """People are told, once, of an item that was given up; stream `user:<id>`."""

    notice_id: str
    user_id: str
    agent_id: str
    item_id: str
    kind: Literal["dead_letter"]
    text: str
