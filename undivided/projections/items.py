"""The item row: a stimulus from its acceptance to its end."""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec.structs import replace

from undivided.domain.events import flights as f
from undivided.domain.events import items as i
from undivided.domain.merging import merge_key
from undivided.domain.recorded import Recorded
from undivided.domain.state.item import (
    DeadLetter,
    Deferred,
    Done,
    Dropped,
    ItemRow,
    Merged,
    Processing,
    Queued,
    Stopped,
    Tries,
    Weighed,
)
from undivided.domain.stimuli import REGISTRY

TOUCHED = (
    i.StimulusAccepted | i.ItemPicked | i.ItemCompleted | i.ItemRequeued | i.ItemDeadLettered
    | i.ItemCancelled | i.ItemMerged | i.ItemDeferred | i.ItemResurfaced | i.ItemResumed
    | i.ItemDropped | i.ItemExpired | i.ItemReprioritized | i.ItemWeighed | f.FocusAnswered
    | f.StopRequested
)  # fmt: skip


def keys(recorded: Recorded) -> tuple[str, ...]:
    """The item that the event is about."""
    event = recorded.event
    if isinstance(event, i.ItemMerged):
        return (event.item_id, event.into)
    if isinstance(event, f.FocusAnswered):
        return () if event.item_id is None else (event.item_id,)
    if isinstance(event, f.StopRequested):
        return event.item_ids
    return (event.item_id,) if isinstance(event, TOUCHED) else ()


def reduce(key: str, row: ItemRow | None, recorded: Recorded) -> ItemRow | None:
    """The item's row after `recorded`."""
    event, at = recorded.event, recorded.at
    if isinstance(event, i.StimulusAccepted):
        return _accepted(event, recorded)
    if row is None:
        return None
    match event:
        case i.ItemPicked():
            tries = replace(row.tries, picked=event.attempt)
            return replace(row, phase=Processing(event.turn_id, at), tries=tries)
        case i.ItemCompleted():
            done = Done(event.turn_id, _started(row, recorded), at, event.outcome)
            return replace(row, phase=done)
        case i.ItemRequeued():
            not_before = at + timedelta(seconds=event.wait_s) if event.wait_s > 0 else None
            return replace(
                row, phase=Queued(not_before, since=at), tries=_counted(row.tries, event.reason)
            )
        case i.ItemDeadLettered():
            return replace(row, phase=DeadLetter(event.turn_id, event.reason, event.notice_id, at))
        case i.ItemCancelled():
            return replace(row, phase=Stopped(event.by, at, event.turn_id))
        case i.ItemMerged():
            return _joined(key, row, event, at)
        case _:
            return _waiting(row, recorded)


def _joined(key: str, row: ItemRow, event: i.ItemMerged, at: datetime) -> ItemRow:
    """The item that joined, or the one that it joined."""
    if key == event.item_id:
        return replace(row, phase=Merged(event.into, at, event.turn_id))
    payload = row.payload
    if event.marks:
        extra = {**payload.extra, **dict.fromkeys(event.marks, True)}
        payload = replace(payload, extra=extra)
    if event.requirement_id is not None:
        payload = replace(payload, requirement_id=event.requirement_id)
    return replace(
        row, merged=row.merged + event.items, priority=event.priority, payload=payload,
        merged_chars=row.merged_chars + event.characters,
    )  # fmt: skip


def _waiting(row: ItemRow, recorded: Recorded) -> ItemRow:
    """What becomes of an item that is put off, comes back, or is dropped."""
    event, at, phase = recorded.event, recorded.at, row.phase
    match event:
        case i.ItemDeferred():
            until = None if event.wait_s is None else at + timedelta(seconds=event.wait_s)
            deferred = Deferred(
                event.by, at, until, event.behind, event.turn_id, event.session_id, event.waits
            )
            if isinstance(phase, Queued) and event.turn_id is None:
                deferred = replace(
                    deferred, turn_id=phase.turn_id, session_id=phase.session_id,
                    answer=phase.answer, stop_by=phase.stop_by,
                )  # fmt: skip
            # What joined it now would be missing in a turn that has begun.
            key = row.merge_key if deferred.turn_id is None else None
            return replace(row, phase=deferred, merge_key=key)
        case f.FocusAnswered() if isinstance(phase, Deferred):
            return replace(row, phase=replace(phase, answer=event.content))
        case f.StopRequested() if isinstance(phase, Deferred | Queued):
            return replace(row, phase=replace(phase, stop_by=event.by))
        case i.ItemResurfaced() if isinstance(phase, Deferred):
            back = Queued(
                turn_id=phase.turn_id, session_id=phase.session_id, answer=phase.answer,
                stop_by=phase.stop_by, since=at,
            )  # fmt: skip
            return replace(row, phase=back)
        case i.ItemResumed():
            return replace(row, phase=Processing(event.turn_id, at))
        case i.ItemDropped():
            return replace(row, phase=Dropped(event.reason, at))
        case i.ItemExpired():
            return replace(row, phase=DeadLetter(None, "expired", event.notice_id, at))
        case i.ItemReprioritized():
            return replace(row, priority=event.priority)
        case i.ItemWeighed():
            return replace(row, weighed=Weighed(event.turn_id, event.merged))
        case _:
            return row


def _accepted(event: i.StimulusAccepted, recorded: Recorded) -> ItemRow:
    known = REGISTRY.get(event.source_type)
    held = event.held_s > 0
    until = recorded.at + timedelta(seconds=event.held_s) if held else None
    return ItemRow(
        id=event.item_id, agent_id=event.agent_id, source_type=event.source_type,
        category=known.category if known else "system", priority=event.priority, seq=event.seq,
        delivery=event.delivery, session_id=event.session_id, payload=event.payload,
        sender=event.sender, tries=Tries(), phase=Queued(until, held), queued_at=recorded.at,
        accepted_by=recorded.id, correlation=recorded.meta.correlation or recorded.id,
        merge_key=merge_key(event),
    )  # fmt: skip


def _started(row: ItemRow, recorded: Recorded) -> datetime:
    return row.phase.started_at if isinstance(row.phase, Processing) else recorded.at


def _counted(tries: Tries, reason: i.RequeueReason) -> Tries:
    match reason:
        case "empty_reply":
            return replace(tries, empty_replies=tries.empty_replies + 1)
        case "failed":
            return replace(tries, failures=tries.failures + 1)
        case "timed_out":
            return replace(tries, timeouts=tries.timeouts + 1)
        case "agent_stopped" | "left_behind":
            return tries
