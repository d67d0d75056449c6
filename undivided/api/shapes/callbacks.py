"""What an agent will hear of later, as the API shows it."""

from __future__ import annotations

from datetime import timedelta

from msgspec import UNSET, Struct, UnsetType

from undivided.api.answers import instant, instant_or_none
from undivided.domain.callbacks import label
from undivided.domain.events.callbacks import CallbackDelivery, CallbackType, Misfire
from undivided.domain.state.callback import CallbackRow, Resolved, TimedOut, Withdrawn
from undivided.store.queries.callbacks import status_of


class Callback(Struct, frozen=True, rename="camel", kw_only=True):
    """A moment, the end of a process, or a reply that an agent hears of without waiting for it.

    Times in ISO 8601; `recurringS` in seconds. `timeoutAt`: when the agent is told that nothing
    came. `itemIds`: as what it reached the mailbox.
    """

    id: str
    agent_id: str
    type: CallbackType
    delivery: CallbackDelivery
    status: str
    label: str
    note: str
    command: str
    origin_session_id: str
    correlation_id: str | None
    registered_at: str
    wake_at: str | None
    recurring_s: float | None
    misfire: Misfire
    timeout_at: str | None
    late: bool | UnsetType = UNSET
    exit_code: int | UnsetType | None = UNSET
    over_at: str | UnsetType = UNSET
    item_ids: tuple[str, ...] | UnsetType = UNSET


class CallbackPage(Struct, frozen=True, rename="camel", kw_only=True):
    """Some callbacks, newest first."""

    items: list[Callback]
    next_cursor: str | None
    position: str


class Wakeup(Struct, frozen=True, rename="camel", kw_only=True):
    """A wakeup to come."""

    id: str
    wake_at: str
    note: str
    recurring_s: float | None
    delivery: CallbackDelivery


class PendingCallback(Struct, frozen=True, rename="camel", kw_only=True):
    """Something else to come; `timeoutAt`: when the agent is told that nothing came."""

    id: str
    type: CallbackType
    label: str
    registered_at: str
    timeout_at: str | None


class CancelledWakeup(Struct, frozen=True, rename="camel", kw_only=True):
    """A wakeup that was taken back."""

    cancelled: bool
    wakeup_id: str


def callback_shape(row: CallbackRow) -> Callback:
    """How a callback is shown."""
    phase = row.phase
    late: bool | UnsetType = UNSET
    exit_code: int | UnsetType | None = UNSET
    over_at: str | UnsetType = UNSET
    item_ids: tuple[str, ...] | UnsetType = UNSET
    match phase:
        case Resolved():
            late, exit_code = phase.late, phase.exit_code
            over_at, item_ids = instant(phase.at), phase.item_ids
        case TimedOut():
            item_ids = (phase.item_id,)
        case Withdrawn():
            over_at = instant(phase.at)
        case _:
            pass
    return Callback(
        id=row.id, agent_id=row.agent_id, type=row.type, delivery=row.delivery,
        status=status_of(row), label=label(row), note=row.note, command=row.command,
        origin_session_id=row.origin_session_id, correlation_id=row.correlation_id,
        registered_at=instant(row.registered_at), wake_at=instant_or_none(row.wake_at),
        recurring_s=row.recurring_s, misfire=row.misfire, timeout_at=_timeout_at(row), late=late,
        exit_code=exit_code, over_at=over_at, item_ids=item_ids,
    )  # fmt: skip


def wakeups_of(rows: list[CallbackRow]) -> list[Wakeup]:
    """The wakeups among open callbacks, the next first."""
    found = sorted((row.wake_at, row.id, row) for row in rows if row.wake_at is not None)
    return [
        Wakeup(
            id=row.id, wake_at=instant(at), note=row.note, recurring_s=row.recurring_s,
            delivery=row.delivery,
        )
        for at, _, row in found
    ]  # fmt: skip


def pending_of(rows: list[CallbackRow]) -> list[PendingCallback]:
    """The others among open callbacks, the oldest first."""
    return [
        PendingCallback(
            id=row.id, type=row.type, label=label(row),
            registered_at=instant(row.registered_at), timeout_at=_timeout_at(row),
        )
        for row in sorted(rows, key=lambda one: (one.registered_at, one.id))
        if row.wake_at is None
    ]  # fmt: skip


def _timeout_at(row: CallbackRow) -> str | None:
    if row.timeout_s is None:
        return None
    return instant(row.registered_at + timedelta(seconds=row.timeout_s))
