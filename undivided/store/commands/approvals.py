"""Answering what an agent asked: the answer and the turn that goes on with it are one."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from undivided.domain.approvals import (
    Answer,
    Late,
    answered,
    carried_on,
    chosen,
    late,
    told_answer,
    waiting_for,
)
from undivided.domain.coordinates import Coordinate
from undivided.domain.errors import NotFound
from undivided.domain.events.catalogue import Event
from undivided.domain.events.people import NotificationRead
from undivided.domain.recorded import Meta, user_stream
from undivided.domain.state.people import ApprovalRow, NotificationRow
from undivided.store.codec import row_decoder
from undivided.store.commands.outlet import Outlet
from undivided.store.log import Addition, AgentTx
from undivided.store.queries.reading import is_id

_approval_of = row_decoder(ApprovalRow)


class ApprovalCommanded(Struct, frozen=True):
    """The approval after a command, and where the log stood."""

    approval: ApprovalRow
    coordinate: Coordinate


async def answer(outlet: Outlet, approval_id: str, given: Answer, meta: Meta) -> ApprovalCommanded:
    """Answer a request for approval, in one transaction with what its turn reads of it.

    Raises:
        NotFound: there is no such request.
        Invalid: the answer does not fit the question.
        Rejected: it was answered already, expired, or is not waited for any more.
    """
    known = await _find(outlet, approval_id)
    stream = user_stream(known.user_id)
    async with outlet.log.locked(known.agent_id, 0, (stream,)) as tx:
        version = await tx.locked_version(stream)
        row: ApprovalRow = await tx.row("approvals", approval_id) or known
        turn, item = await tx.row("turns", row.turn_id), await tx.row("items", row.item_id)
        waiting = waiting_for(row, tx.agent, turn, item)
        too_late = late(row, waiting, tx.view.now)
        if too_late is not None or waiting is None:
            await _record_why(tx, Addition(stream, version, _why(too_late)), meta)
            raise (too_late or Late("approval_cancelled")).refusal(row)
        option = chosen(row, given)
        mine = carried_on(row, waiting, told_answer(given, option))
        told: tuple[Event, ...] = (answered(row, given, option), *await _read(tx, row, given.by))
        rows: dict[tuple[str, str], Any] = {("approvals", row.id): row}
        if item is not None:
            rows["items", item.id] = item
        appended = await tx.append(
            [tx.addition(*mine), Addition(stream, version, told)], meta, known=rows
        )
    outlet.wake(tx.agent)
    return ApprovalCommanded(appended.rows["approvals", row.id], appended.coordinate)


def _why(too_late: Late | None) -> tuple[Event, ...]:
    return () if too_late is None or too_late.event is None else (too_late.event,)


async def _record_why(tx: AgentTx, addition: Addition, meta: Meta) -> None:
    """Record that it expired, or is not waited for, if nobody has yet."""
    if addition.events:
        await tx.append([addition], meta)


async def _read(tx: AgentTx, row: ApprovalRow, by: str) -> tuple[NotificationRead, ...]:
    """Whoever answers has seen the notification."""
    told: NotificationRow | None = await tx.row("notifications", row.notification_id)
    if told is None or told.read_at is not None:
        return ()
    return (NotificationRead(notification_id=told.id, user_id=row.user_id, by=by),)


async def _find(outlet: Outlet, approval_id: str) -> ApprovalRow:
    database = outlet.log.database
    if is_id(approval_id):
        async with database.connection() as connection:
            cursor = await connection.execute(
                "SELECT to_jsonb(a)::text FROM approvals a WHERE tenant = %s AND id = %s",
                (database.tenant, approval_id),
            )
            found = await cursor.fetchone()
        if found is not None:
            return _approval_of(found[0])
    raise NotFound(f"there is no approval {approval_id[:128]!r}")
