"""Sessions, one or many."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from msgspec import Struct

from undivided.domain.attention import chat_session
from undivided.domain.errors import NotFound
from undivided.domain.recorded import agent_stream, session_stream
from undivided.domain.state.session import SessionRow
from undivided.domain.stimuli import REGISTRY
from undivided.store.codec import row_decoder
from undivided.store.history import past_of
from undivided.store.queries.reading import Reading, is_id

_session_of = row_decoder(SessionRow)
CHATS = [kind.name for kind in REGISTRY.values() if kind.scenario == "chat"]
"""Types whose items belong to the agent's main session where they name none."""

_PAGE = """
SELECT to_jsonb(s)::text, t.version, e.txid || '-' || e.position,
       p.named, p.unnamed
  FROM sessions s
  JOIN LATERAL (SELECT count(*) FILTER (WHERE i.session_id = s.id) AS named,
                       count(*) FILTER (WHERE i.session_id IS NULL
                                          AND i.source_type = ANY(%(chats)s)) AS unnamed
                  FROM items i WHERE i.tenant = s.tenant AND i.agent_id = s.agent_id
                                 AND i.status = 'queued') p ON true
  JOIN streams t ON t.tenant = s.tenant AND t.stream = 'session:' || s.id
  JOIN events e ON e.tenant = t.tenant AND e.stream = t.stream AND e.version = t.version
 WHERE s.tenant = %(tenant)s AND s.status <> 'deleted'
   AND (%(agent)s::text IS NULL OR s.agent_id = %(agent)s)
   AND (%(id)s::text IS NULL OR s.id = %(id)s)
   AND (s.opened_at, s.id) > (%(opened_at)s, %(after)s)
 ORDER BY s.opened_at, s.id LIMIT %(limit)s"""

_BORN = """
SELECT s.id, s.opened_at FROM sessions s
  JOIN events e ON e.tenant = s.tenant AND e.stream = 'session:' || s.id AND e.version = 1
 WHERE s.tenant = %(tenant)s AND (%(agent)s::text IS NULL OR s.agent_id = %(agent)s)
   AND (s.opened_at, s.id) > (%(opened_at)s, %(after)s)
   AND (e.txid, e.position) <= (%(txid)s, %(position)s)
 ORDER BY s.opened_at, s.id LIMIT %(limit)s"""


class SessionThen(Struct, frozen=True):
    """A session, its stream's version and last coordinate, and how many items wait for it."""

    session: SessionRow
    revision: int
    position: str
    pending: int


class SessionPlace(Struct, frozen=True, array_like=True):
    """Where a page of sessions ended."""

    opened_at: datetime
    id: str


_FIRST = SessionPlace(datetime.fromisoformat("0001-01-01T00:00:00+00:00"), "")


async def session(reading: Reading, session_id: str) -> SessionThen:
    """One session.

    Raises:
        NotFound: there is no such session, or it was deleted.
    """
    found = await _one(reading, session_id) if is_id(session_id) else None
    if found is None or found.session.status == "deleted":
        raise NotFound(f"there is no session {session_id[:128]!r}")
    return found


async def sessions(
    reading: Reading, agent_id: str | None, after: SessionPlace | None, limit: int
) -> tuple[list[SessionThen], SessionPlace | None]:
    """A page of sessions, oldest first, and where it ends if more follow.

    Raises:
        NotFound: an agent is named that never was.
    """
    if agent_id is not None:
        await _known(reading, agent_id)
    place = after or _FIRST
    values: dict[str, Any] = {
        "agent": agent_id, "opened_at": place.opened_at, "after": place.id, "limit": limit + 1,
    }  # fmt: skip
    if reading.at is None:
        rows = await reading.rows(_PAGE, id=None, chats=CHATS, **values)
        page = [_then(*row) for row in rows[:limit]]
        last = page[-1].session if page else None
        end = SessionPlace(last.opened_at, last.id) if last else None
        return page, end if len(rows) > limit else None
    born = await reading.rows(_BORN, **values, **reading.past())
    then = [await _one(reading, session_id) for session_id, _ in born[:limit]]
    page = [one for one in then if one is not None and one.session.status != "deleted"]
    end = SessionPlace(born[limit - 1][1], born[limit - 1][0]) if len(born) > limit else None
    return page, end


async def _one(reading: Reading, session_id: str) -> SessionThen | None:
    if reading.at is None:
        values = {"opened_at": _FIRST.opened_at, "after": "", "limit": 1, "agent": None}
        rows = await reading.rows(_PAGE, id=session_id, chats=CHATS, **values)
        return _then(*rows[0]) if rows else None
    past = await past_of(reading.database, session_stream(session_id), reading.at)
    if past is None or past.session is None:
        return None
    pending = await _pending_then(reading, past.session)
    return SessionThen(past.session, past.version, str(past.coordinate), pending)


async def _pending_then(reading: Reading, row: SessionRow) -> int:
    if reading.at is None:
        return 0
    agent = await past_of(reading.database, agent_stream(row.agent_id), reading.at)
    items = agent.items.values() if agent is not None else ()
    main = row.id == chat_session(row.agent_id)
    return sum(
        item.phase.__struct_config__.tag == "queued"
        and (
            item.session_id == row.id
            or (item.session_id is None and main and item.source_type in CHATS)
        )
        for item in items
    )


def _then(text: str, revision: int, position: str, named: int, unnamed: int) -> SessionThen:
    row = _session_of(text)
    main = row.id == chat_session(row.agent_id)
    return SessionThen(row, revision, position, named + unnamed if main else named)


async def _known(reading: Reading, agent_id: str) -> None:
    statement = "SELECT 1 FROM streams WHERE tenant = %(tenant)s AND stream = %(stream)s"
    if not is_id(agent_id) or not await reading.rows(statement, stream=agent_stream(agent_id)):
        raise NotFound(f"there is no agent {agent_id[:128]!r}")
