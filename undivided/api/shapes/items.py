"""A stimulus in a mailbox as the API shows it."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Struct, UnsetType

from undivided.api.answers import instant, instant_or_none
from undivided.domain.events.items import Payload, Sender
from undivided.domain.merging import composed
from undivided.domain.outcomes import outcome_name
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
)
from undivided.domain.state.session import ActivityRow
from undivided.store.queries.items import ItemThen


class PayloadShape(Struct, frozen=True, rename="camel", kw_only=True, omit_defaults=True):
    """What a stimulus says."""

    content: str
    summary: str = ""
    task_id: str | None = None
    requirement_id: str | None = None
    extra: dict[str, Any] = {}


class MetadataShape(Struct, frozen=True, rename="camel", kw_only=True, omit_defaults=True):
    """Who sent a stimulus."""

    sender_id: str | None = None
    sender_name: str | None = None
    sender_role: str | None = None


class Item(Struct, frozen=True, rename="camel", kw_only=True):
    """One item. `attempts` counts its picks; `position` is the last event about it."""

    id: str
    agent_id: str
    source_type: str
    category: str
    priority: int
    status: str
    delivery: str
    payload: PayloadShape
    metadata: MetadataShape
    attempts: int
    merged_from: tuple[str, ...]
    queued_at: str
    position: str
    merged_into: str | UnsetType = UNSET
    deferred_until: str | UnsetType = UNSET
    not_before: str | UnsetType = UNSET
    session_id: str | UnsetType = UNSET
    turn_id: str | UnsetType = UNSET
    started_at: str | UnsetType = UNSET
    completed_at: str | UnsetType = UNSET
    outcome: str | UnsetType = UNSET


class Times(Struct, frozen=True):
    """When an item's phases began, how it ended and in which turn."""

    status: str
    turn_id: str | None = None
    started_at: str | None = None
    completed_at: str | None = None
    outcome: str | None = None
    not_before: str | None = None
    merged_into: str | None = None
    deferred_until: str | None = None


def times_of(row: ItemRow) -> Times:
    """The same columns whatever phase an item is in."""
    match row.phase:
        case Queued(not_before=not_before):
            return Times("queued", not_before=instant_or_none(not_before))
        case Processing(turn_id=turn_id, started_at=started_at):
            return Times("processing", turn_id, instant(started_at))
        case Done() as done:
            return Times(
                "completed", done.turn_id, instant(done.started_at), instant(done.completed_at),
                outcome_name(done.outcome),
            )  # fmt: skip
        case Stopped() as stopped:
            return Times(
                "cancelled", stopped.turn_id, None, instant(stopped.completed_at), "cancelled"
            )
        case Merged() as merged:
            at = instant(merged.merged_at)
            return Times("merged", merged.turn_id, completed_at=at, merged_into=merged.into)
        case Deferred() as put_off:
            until = instant_or_none(put_off.until)
            return Times("deferred", put_off.turn_id, deferred_until=until)
        case Dropped() as dropped:
            return Times("dropped", completed_at=instant(dropped.completed_at),
                         outcome=dropped.reason)  # fmt: skip
        case DeadLetter() as dead:
            return Times("dead_letter", dead.turn_id, None, instant(dead.completed_at), dead.reason)


def item_shape(then: ItemThen) -> Item:
    """How one item is shown."""
    row, times = then.item, times_of(then.item)
    last: ActivityRow | None = then.activities[-1] if then.activities else None
    session_id = last.session_id if last is not None else row.session_id
    started = times.started_at or (last and times.completed_at and instant(last.started_at))
    return Item(
        id=row.id, agent_id=row.agent_id, source_type=row.source_type, category=row.category,
        priority=row.priority, status=times.status, delivery=row.delivery,
        payload=payload_shape(composed(row, then.joined)), metadata=metadata_shape(row.sender),
        attempts=row.tries.picked, merged_from=tuple(one.id for one in then.joined),
        queued_at=instant(row.queued_at),
        position=then.position, not_before=times.not_before or UNSET,
        session_id=session_id or UNSET, turn_id=times.turn_id or UNSET,
        started_at=started or UNSET, completed_at=times.completed_at or UNSET,
        outcome=times.outcome or UNSET, merged_into=times.merged_into or UNSET,
        deferred_until=times.deferred_until or UNSET,
    )  # fmt: skip


def payload_shape(payload: Payload) -> PayloadShape:
    """What a stimulus says, as it came."""
    return PayloadShape(
        content=payload.content, summary=payload.summary, task_id=payload.task_id,
        requirement_id=payload.requirement_id, extra=payload.extra,
    )  # fmt: skip


def metadata_shape(sender: Sender) -> MetadataShape:
    """Who sent a stimulus, as far as is known."""
    return MetadataShape(sender_id=sender.id, sender_name=sender.name, sender_role=sender.role)
