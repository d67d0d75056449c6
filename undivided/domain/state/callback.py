"""What an agent will hear of later."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from undivided.domain.events.callbacks import CallbackDelivery, CallbackType, Misfire
from undivided.domain.value import Value


class Pending(Value, frozen=True, tag="pending", tag_field="status"):
    """It is still to come."""


class TimedOut(Value, frozen=True, tag="timed_out", tag_field="status"):
    """It is overdue, and its agent was told so in the heartbeat `item_id`."""

    at: datetime
    item_id: str


class Resolved(Value, frozen=True, tag="resolved", tag_field="status"):
    """It came, and reached the mailbox."""

    at: datetime
    how: Literal["fired", "completed", "vanished"]
    item_ids: tuple[str, ...]
    late: bool
    exit_code: int | None = None


class Withdrawn(Value, frozen=True, tag="cancelled", tag_field="status"):
    """Nobody wanted to hear of it any more."""

    at: datetime
    by: str


CallbackPhase = Pending | TimedOut | Resolved | Withdrawn


class CallbackRow(Value, frozen=True, kw_only=True):
    """Something that an agent will hear of.

    A process runs on `host`, for `limit_s` at most. `registered_by` and `correlation` are cause
    and story of what it brings. `version` is that of the event that registered it,
    `changed_version` that of the last about it.
    """

    id: str
    agent_id: str
    type: CallbackType
    delivery: CallbackDelivery
    origin_session_id: str
    turn_id: str | None
    command: str
    note: str
    correlation_id: str | None
    wake_at: datetime | None
    recurring_s: float | None
    registered_at: datetime
    timeout_s: float | None
    host: str | None
    limit_s: float | None
    misfire: Misfire
    phase: CallbackPhase
    registered_by: str
    correlation: str
    version: int
    changed_version: int
