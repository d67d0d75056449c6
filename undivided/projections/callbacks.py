"""Callbacks: what agents will hear of later."""

from __future__ import annotations

from msgspec.structs import replace

from undivided.domain.events import callbacks as c
from undivided.domain.events.heartbeats import HeartbeatEnqueued
from undivided.domain.recorded import Recorded
from undivided.domain.state.callback import (
    CallbackRow,
    Pending,
    Resolved,
    TimedOut,
    Withdrawn,
)

EXPECTED = (
    c.CallbackRegistered | c.CallbackRearmed | c.CallbackResolved | c.CallbackCancelled
    | HeartbeatEnqueued
)  # fmt: skip


def callback_keys(recorded: Recorded) -> tuple[str, ...]:
    """The callback that the event is about; a heartbeat tells of those that are overdue."""
    event = recorded.event
    if isinstance(event, HeartbeatEnqueued):
        return event.overdue
    return (event.callback_id,) if isinstance(event, EXPECTED) else ()


def reduce_callback(row: CallbackRow | None, recorded: Recorded) -> CallbackRow | None:
    """The callback after `recorded`."""
    event, at = recorded.event, recorded.at
    if isinstance(event, c.CallbackRegistered):
        return _registered(event, recorded)
    if row is None or not isinstance(event, EXPECTED):
        return row
    row = replace(row, changed_version=recorded.version)
    match event:
        case c.CallbackRearmed():
            return replace(row, wake_at=event.wake_at)
        case c.CallbackResolved():
            phase = Resolved(at, event.how, event.item_ids, event.late, event.exit_code)
            return replace(row, phase=phase)
        case c.CallbackCancelled():
            return replace(row, phase=Withdrawn(at, event.by))
        case HeartbeatEnqueued() if isinstance(row.phase, Pending):
            return replace(row, phase=TimedOut(at, event.item_id))
        case _:
            return row


def _registered(event: c.CallbackRegistered, recorded: Recorded) -> CallbackRow:
    return CallbackRow(
        id=event.callback_id, agent_id=event.agent_id, type=event.type,
        delivery=event.delivery, origin_session_id=event.origin_session_id,
        turn_id=event.turn_id, command=event.command, note=event.note,
        correlation_id=event.correlation_id, wake_at=event.wake_at,
        recurring_s=event.recurring_s, registered_at=recorded.at, timeout_s=event.timeout_s,
        host=event.host, limit_s=event.limit_s, misfire=event.misfire,
        phase=Pending(), registered_by=recorded.id,
        correlation=recorded.meta.correlation or recorded.id, version=recorded.version,
        changed_version=recorded.version,
    )  # fmt: skip
