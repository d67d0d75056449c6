"""A session's life, commanded from outside."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from undivided.domain.agents import request_stop, stop_set_aside
from undivided.domain.coordinates import Coordinate
from undivided.domain.errors import NotFound, Rejected
from undivided.domain.events.catalogue import Event
from undivided.domain.events.sessions import SessionArchived, SessionDeleted
from undivided.domain.recorded import Meta, session_stream
from undivided.domain.state.agent import Idle
from undivided.domain.state.item import ItemRow
from undivided.domain.state.session import SessionRow, TurnRow
from undivided.store.codec import row_decoder
from undivided.store.commands.outlet import Outlet
from undivided.store.log import Addition, AgentTx

_session_of = row_decoder(SessionRow)
Ending = Literal["archived", "deleted"]


class SessionCommanded(Struct, frozen=True):
    """The session after a command; `coordinate` None if nothing had to change."""

    session: SessionRow
    coordinate: Coordinate | None


async def stop_turn(outlet: Outlet, session_id: str, meta: Meta) -> SessionCommanded:
    """Ask the turn at work in a session to end at its next safe point; none is no error."""
    session = await _find(outlet, session_id)
    async with outlet.log.locked(session.agent_id) as tx:
        focus = tx.agent.attention
        here = not isinstance(focus, Idle) and focus.session_id == session_id
        events = request_stop(tx.agent, meta.actor) if here else ()
        aside = (await tx.session(session_id)).row
        for turn_id in aside.set_aside if aside is not None else ():
            events = (*events, *stop_set_aside(tx.agent, await _items_of(tx, turn_id), meta.actor))
        if not events:
            return SessionCommanded(session, None)
        appended = await tx.append([tx.addition(*events)], meta)
        before = tx.agent
    outlet.interrupt(before)
    outlet.wake(before)
    return SessionCommanded(session, appended.coordinate)


async def end(outlet: Outlet, session_id: str, how: Ending, meta: Meta) -> SessionCommanded:
    """Archive or delete a session: it takes no more stimuli.

    Raises:
        NotFound: there is no such session, or it was deleted.
        Rejected: a turn is at work in it.
    """
    found = await _find(outlet, session_id)
    async with outlet.log.locked(found.agent_id) as tx:
        seen = await tx.session(session_id)
        session = _there(seen.row, session_id)
        events = _ending(session, how)
        if not events:
            return SessionCommanded(session, None)
        addition = Addition(session_stream(session_id), seen.version, events)
        appended = await tx.append([addition], meta, known={("sessions", session_id): session})
    outlet.announce(session.agent_id)
    return SessionCommanded(appended.rows[("sessions", session_id)], appended.coordinate)


async def _items_of(tx: AgentTx, turn_id: str) -> tuple[ItemRow, ...]:
    """The items of a turn."""
    turn: TurnRow | None = await tx.row("turns", turn_id)
    rows = [await tx.row("items", item_id) for item_id in (turn.item_ids if turn else ())]
    return tuple(row for row in rows if row is not None)


def _ending(session: SessionRow, how: Ending) -> tuple[Event, ...]:
    """Only an idle session can end: a turn at work is the only other writer of its stream."""
    if session.active_turn is not None:
        raise Rejected(
            "session_busy",
            f"turn {session.active_turn} is at work in session {session.id}; stop it first",
        )
    if session.set_aside:
        raise Rejected(
            "session_busy",
            f"turn {session.set_aside[0]} of session {session.id} was set aside; stop it first",
        )
    if session.status == how:
        return ()
    if how == "archived":
        return (SessionArchived(session_id=session.id),)
    return (SessionDeleted(session_id=session.id),)


async def _find(outlet: Outlet, session_id: str) -> SessionRow:
    database = outlet.log.database
    async with database.connection() as connection:
        cursor = await connection.execute(
            "SELECT to_jsonb(s)::text FROM sessions s WHERE s.tenant = %s AND s.id = %s",
            (database.tenant, session_id),
        )
        row = await cursor.fetchone()
    return _there(_session_of(row[0]) if row else None, session_id)


def _there(session: SessionRow | None, session_id: str) -> SessionRow:
    if session is None or session.status == "deleted":
        raise NotFound(f"there is no session {session_id}")
    return session
