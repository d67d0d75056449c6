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
    """A stimulus is in the mailbox; `seq` is its place within its priority, for ever.

    It is not picked for `held_s` seconds, so that others can join it.
    """

    agent_id: str
    item_id: str
    seq: int
    source_type: str
    priority: int
    payload: Payload
    sender: Sender
    delivery: Delivery
    session_id: str | None = None
    held_s: float = 0.0


class ItemPicked(Value, frozen=True, kw_only=True):
    """Attention turned to an item: it is now the focus of `turn_id`.

    `batch_of` is the item that the turn is about, where this one is handled together with it.
    """

    agent_id: str
    item_id: str
    turn_id: str
    session_id: str
    epoch: int
    attempt: int
    decision: Decision
    batch_of: str | None = None


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


class AgentIncomplete(Value, frozen=True, kw_only=True):
    """An item is over and nobody got a usable answer: told once, beside what became of it.

    `turn_id` is its last turn, `reason` what was missing or went wrong.
    """

    agent_id: str
    item_id: str
    turn_id: str
    source_type: str
    task_id: str | None
    reason: str


class ItemCancelled(Value, frozen=True, kw_only=True):
    """The item is over without having been handled; `turn_id` where it was in a turn."""

    agent_id: str
    item_id: str
    turn_id: str | None
    by: str
    decision: Decision


DeferredBy = Literal["preempted", "agent", "deliberation", "judge", "person"]
ResurfaceCause = Literal["due", "idle", "preemptor_done", "answered", "person"]


class ItemMerged(Value, frozen=True, kw_only=True):
    """A waiting item joined another, which from here on is handled for both.

    `into` has `priority` now, and the `marks` and requirement that it did not have before; with
    `turn_id` the item went into that running turn as a live update. It brings `characters` in
    `items` items, itself and what had joined it before.
    """

    agent_id: str
    item_id: str
    into: str
    priority: int
    decision: Decision
    marks: tuple[str, ...] = ()
    requirement_id: str | None = None
    turn_id: str | None = None
    characters: int = 0
    items: int = 1


class ItemDeferred(Value, frozen=True, kw_only=True):
    """The item is put off, for `wait_s` seconds or until the agent is idle.

    With `turn_id` it was in that turn, which is set aside with it and goes on when it comes back;
    `behind` names the item that it comes back after.
    """

    agent_id: str
    item_id: str
    epoch: int
    by: DeferredBy
    decision: Decision
    wait_s: float | None = None
    behind: str | None = None
    turn_id: str | None = None
    session_id: str | None = None
    waits: bool = False


class ItemResurfaced(Value, frozen=True, kw_only=True):
    """A deferred item waits again, at its own place."""

    agent_id: str
    item_id: str
    cause: ResurfaceCause


class ItemResumed(Value, frozen=True, kw_only=True):
    """A preempted item is in focus again, in the turn that was set aside with it."""

    agent_id: str
    item_id: str
    turn_id: str
    session_id: str
    epoch: int
    decision: Decision


class ItemDropped(Value, frozen=True, kw_only=True):
    """A waiting item was discarded without having been handled; `reason` says why."""

    agent_id: str
    item_id: str
    reason: str
    decision: Decision


class ItemExpired(Value, frozen=True, kw_only=True):
    """A waiting item is given up, for nobody got to it in time; people are told in `notice_id`."""

    agent_id: str
    item_id: str
    notice_id: str
    decision: Decision


class ItemReprioritized(Value, frozen=True, kw_only=True):
    """A waiting item has another priority from here on; `by` says who wanted that."""

    agent_id: str
    item_id: str
    priority: int
    by: str


class ItemWeighed(Value, frozen=True, kw_only=True):
    """A waiting item was weighed against the turn at work; the decision says what came of it.

    `merged` is how much had joined it by then: it is weighed again only when more has.
    """

    agent_id: str
    item_id: str
    turn_id: str
    epoch: int
    merged: int
    decision: Decision


class NoticePosted(Value, frozen=True, kw_only=True):
    """People are told, once, of an item that was given up; stream `user:<id>`."""

    notice_id: str
    user_id: str
    agent_id: str
    item_id: str
    kind: Literal["dead_letter"]
    text: str
