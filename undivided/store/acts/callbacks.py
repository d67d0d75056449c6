"""Acts about what an agent will hear of later."""

from __future__ import annotations

import socket

from undivided.domain import callbacks
from undivided.domain.callbacks import (
    Asking,
    CancelWakeup,
    RunInBackground,
    ScheduleWakeup,
    Unsent,
    told,
)
from undivided.domain.errors import Full, Invalid
from undivided.domain.state.callback import CallbackRow
from undivided.store.acts.doing import Doing, Done, refused
from undivided.store.commands.callbacks import refuse_more
from undivided.store.flights import Flight
from undivided.store.fresh import fresh_id
from undivided.store.log import AgentTx


async def _schedule(tx: AgentTx, flight: Flight, act: ScheduleWakeup) -> Done:
    try:
        await refuse_more(tx)
        event = callbacks.wakeup(act, _asking(flight, "wake"), tx.view.now)
    except (Full, Invalid) as wrong:
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
    try:
        await refuse_more(tx)
    except Full as full:
        return refused(str(full))
    event = callbacks.background(act, _asking(flight, "bg"), socket.gethostname())
    content = told(status="running", callback_id=event.callback_id, command=act.command)
    return Done(content=content, events=(event,))


async def _unsent(tx: AgentTx, flight: Flight, act: Unsent) -> Done:
    row: CallbackRow | None = await tx.row("callbacks", act.callback_id)
    event = None if row is None else callbacks.cancelled(row, flight.agent.id)
    return Done(content=act.why, events=(event,) if event else (), failed=True)


def _asking(flight: Flight, prefix: str) -> Asking:
    return Asking(flight.agent.id, flight.turn.id, flight.session.id, fresh_id(prefix))


SCHEDULING = Doing(_schedule)
CANCELLING = Doing(_cancel)
STARTING = Doing(_start)
UNSENT = Doing(_unsent)
