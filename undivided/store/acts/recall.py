"""Acts that only look back; they change nothing, and see what their own transaction sees."""

from __future__ import annotations

from undivided.domain import recall
from undivided.domain.attention import channel_session, chat_session
from undivided.domain.memory import told
from undivided.domain.recall import ListActivities, ReadActivity, RecallContext, transcript
from undivided.domain.state.session import ActivityRow, SessionRow, TurnRow
from undivided.store.acts.doing import Doing, Done, refused
from undivided.store.codec import escape_text, row_decoder
from undivided.store.database import TENANT
from undivided.store.flights import Flight
from undivided.store.log import AgentTx
from undivided.store.steps import LATEST, Span, page_of

_activity_of = row_decoder(ActivityRow)
_LAST = """
SELECT to_jsonb(a)::text FROM activities a
 WHERE a.tenant = %s AND a.agent_id = %s AND (%s::text IS NULL OR a.type = %s)
 ORDER BY a.started_at DESC, a.id DESC LIMIT %s"""


async def _list(tx: AgentTx, _flight: Flight, act: ListActivities) -> Done:
    kind = None if act.type is None else escape_text(act.type)
    about = (TENANT, tx.agent.id, kind, kind, act.limit)
    cursor = await tx.connection.execute(_LAST, about)
    rows = [_activity_of(text) for (text,) in await cursor.fetchall()]
    return Done(content=recall.activities(rows))


async def _read(tx: AgentTx, _flight: Flight, act: ReadActivity) -> Done:
    row: ActivityRow | None = await tx.row("activities", act.activity_id)
    turn: TurnRow | None = await tx.row("turns", act.activity_id)
    if row is None or turn is None or row.agent_id != tx.agent.id:
        return refused(told(status="not_found", activity_id=act.activity_id))
    end = LATEST if turn.last_version is None else turn.last_version + 1
    span = Span(turn.first_version, min(act.before or LATEST, end), turn.id)
    page = await page_of(tx.connection, turn.session_id, span, act.limit)
    logs = transcript(page.said)
    return Done(content=told(status="ok", activity_id=row.id, logs=logs, before=page.before))


async def _context(tx: AgentTx, flight: Flight, act: RecallContext) -> Done:
    session_id = _session(tx, flight, act)
    session: SessionRow | None = await tx.row("sessions", session_id)
    if session is None or session.agent_id != tx.agent.id or session.status == "deleted":
        return refused(told(status="not_found", scope=act.scope, name=act.name or None))
    span = Span(before=act.before or LATEST)
    page = await page_of(tx.connection, session_id, span, act.limit)
    messages = transcript(page.said)
    return Done(
        content=told(status="ok", session_id=session_id, messages=messages, before=page.before)
    )


def _session(tx: AgentTx, flight: Flight, act: RecallContext) -> str:
    match act.scope:
        case "chat":
            return chat_session(tx.agent.id)
        case "chat_session":
            return act.name or chat_session(tx.agent.id)
        case "channel":
            return channel_session(tx.agent.id, act.name)
        case "session":
            return act.name or flight.session.id


LISTING = Doing(_list)
READING = Doing(_read)
CONTEXT = Doing(_context)
