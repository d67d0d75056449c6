"""Acts about what an agent will hear of later."""

from __future__ import annotations

import socket

from undivided.domain import callbacks
from undivided.domain.callbacks import (
    Asking,
    AwaitReply,
    CancelWakeup,
    RunInBackground,
    ScheduleWakeup,
    told,
)
from undivided.domain.errors import Invalid
from undivided.domain.state.callback import CallbackRow
from undivided.store.acts.doing import Doing, Done, refused
from undivided.store.database import TENANT
from undivided.store.flights import Flight
from undivided.store.fresh import fresh_id
from undivided.store.log import AgentTx

PENDING_AT_MOST = 1000
"""Callbacks that one agent can have pending; what it was told is overdue may never come."""


async def _schedule(tx: AgentTx, flight: Flight, act: ScheduleWakeup) -> Done:
    if await _pending(tx) >= PENDING_AT_MOST:
        return refused(f"{PENDING_AT_MOST} callbacks are pending already; cancel some first")
    try:
        event = callbacks.wakeup(act, _asking(flight, "wake"), tx.view.now)
    except Invalid as wrong:
        return refused(str(wrong))
    wake_at = event.wake_at.isoformat() if event.wake_at else None
    content = told(status="scheduled", wakeup_id=event.callback_id, wake_at=wake_at)
    return Done(content=content, events=(event,))


async def _cancel(tx: AgentTx, flight: Flight, act: CancelWakeup) -> Done:
    row: CallbackRow | None = await tx.row("callbacks", act.wakeup_id)
    own = row is not None and row.agent_id == tx.agent.id and row.type == "wakeup"
    event = callbacks.cancelled(row, flight.agent.id) if row is not None and own else None
    if event is None:
        return Done(content=told(status="not_found", wakeup_id=act.wakeup_id))
    return Done(content=told(status="ok", wakeup_id=act.wakeup_id), events=(event,))


async def _start(tx: AgentTx, flight: Flight, act: RunInBackground) -> Done:
    """Registered first and started after: a crash in between leaves it to the host's workers."""
    if await _pending(tx) >= PENDING_AT_MOST:
        return refused(f"{PENDING_AT_MOST} callbacks are pending already")
    event = callbacks.background(act, _asking(flight, "bg"), socket.gethostname())
    content = told(status="running", callback_id=event.callback_id, command=act.command)
    return Done(content=content, events=(event,))


async def _await(_tx: AgentTx, flight: Flight, act: AwaitReply) -> Done:
    event = callbacks.reply(act, _asking(flight, "a2a"))
    return Done(content=act.content, events=(event,))


async def _pending(tx: AgentTx) -> int:
    cursor = await tx.connection.execute(
        "SELECT count(*) FROM callbacks c WHERE c.tenant = %s AND c.agent_id = %s"
        " AND c.status = 'pending'",
        (TENANT, tx.agent.id),
    )
    row = await cursor.fetchone()
    return int(row[0]) if row else 0


def _asking(flight: Flight, prefix: str) -> Asking:
    return Asking(flight.agent.id, flight.turn.id, flight.session.id, fresh_id(prefix))


SCHEDULING = Doing(_schedule)
CANCELLING = Doing(_cancel)
STARTING = Doing(_start)
AWAITING = Doing(_await)
