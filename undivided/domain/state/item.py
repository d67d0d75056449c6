"""A stimulus in a mailbox, through its whole life."""

from __future__ import annotations

from datetime import datetime

from undivided.domain.events.items import Delivery, Payload, Sender
from undivided.domain.outcomes import Outcome
from undivided.domain.value import Value


class Queued(Value, frozen=True, tag="queued", tag_field="status"):
    """It waits, not to be picked before `not_before` if that is given.

    `coalescing`: it is only held back for what may still join it. `turn_id` is the turn that was
    set aside with it, in `session_id`, and `answer` what that waited for, once it has come.
    `since` is when it came back, if it was not here all the time.
    """

    not_before: datetime | None = None
    coalescing: bool = False
    turn_id: str | None = None
    session_id: str | None = None
    answer: str | None = None
    stop_by: str | None = None
    since: datetime | None = None


class Processing(Value, frozen=True, tag="processing", tag_field="status"):
    """It is in the focus of a turn, suspended turns included."""

    turn_id: str
    started_at: datetime


class Done(Value, frozen=True, tag="completed", tag_field="status"):
    """Its turn ended; `outcome` says how."""

    turn_id: str
    started_at: datetime
    completed_at: datetime
    outcome: Outcome


class Stopped(Value, frozen=True, tag="cancelled", tag_field="status"):
    """Somebody ended it before it was handled."""

    by: str
    completed_at: datetime
    turn_id: str | None = None


class DeadLetter(Value, frozen=True, tag="dead_letter", tag_field="status"):
    """It was given up, in `turn_id` if it was in one; people were told once, in `notice_id`."""

    turn_id: str | None
    reason: str
    notice_id: str
    completed_at: datetime


class Merged(Value, frozen=True, tag="merged", tag_field="status"):
    """It joined `into`, in `turn_id` where that was at work, and is handled with it."""

    into: str
    merged_at: datetime
    turn_id: str | None = None


class Deferred(Value, frozen=True, tag="deferred", tag_field="status"):
    """It is put off until `until`; without, until the agent is idle.

    `behind` is the item it comes back after, `turn_id` the turn that was set aside with it.
    `waits`: that turn waits for something, and comes back when it has it.
    """

    by: str
    since: datetime
    until: datetime | None = None
    behind: str | None = None
    turn_id: str | None = None
    session_id: str | None = None
    waits: bool = False
    answer: str | None = None
    stop_by: str | None = None
    """Who asked the turn that was set aside to end."""


class Dropped(Value, frozen=True, tag="dropped", tag_field="status"):
    """It was discarded without having been handled."""

    reason: str
    completed_at: datetime


ItemPhase = Queued | Processing | Done | Stopped | DeadLetter | Merged | Deferred | Dropped
TERMINAL = ("completed", "cancelled", "dead_letter", "merged", "dropped")


class Tries(Value, frozen=True):
    """How often an item was tried and why it came back, each cause by itself."""

    picked: int = 0
    empty_replies: int = 0
    failures: int = 0
    timeouts: int = 0


class Weighed(Value, frozen=True):
    """The turn that an item was last weighed against, and how much had joined it by then."""

    turn_id: str
    merged: int


class ItemRow(Value, frozen=True, kw_only=True):
    """One stimulus in one mailbox. `seq` is kept on every way back into the queue."""

    id: str
    agent_id: str
    source_type: str
    category: str
    priority: int
    seq: int
    delivery: Delivery
    session_id: str | None
    payload: Payload
    sender: Sender
    tries: Tries
    phase: ItemPhase
    queued_at: datetime
    accepted_by: str
    """Id of the event that accepted it: the cause of its turns."""
    correlation: str
    merged: int = 0
    """How many items have joined it."""
    merge_key: str | None = None
    """What waiting items of the same key can join it by; None where none may."""
    weighed: Weighed | None = None
    merged_chars: int = 0
    """Characters of what has joined it."""

    @property
    def waits_since(self) -> datetime:
        """When it began to wait, or waits again."""
        back = self.phase.since if isinstance(self.phase, Queued) else None
        return back or self.queued_at
