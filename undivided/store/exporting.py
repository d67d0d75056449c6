"""Export: the events of one agent or of one session, whole and in order, for a file.

Of an agent: its stream, those of its sessions, and what people were told of it. Of a session:
its stream, and of its agent's what belongs to it (the agent's configuration and flights, the
items of the session with every decision about them), so that it replays elsewhere as it was
without telling of other conversations.

Everything is read up to one settled coordinate, so that an export of a busy agent holds whole
transactions and nothing after them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any, Literal

import msgspec
from msgspec import Struct

from undivided.domain.coordinates import ORIGIN, Coordinate, parse_coordinate
from undivided.domain.errors import NotFound
from undivided.domain.recorded import agent_stream, session_stream
from undivided.domain.redaction import redacted, redacted_meta
from undivided.store.database import Database
from undivided.store.event_lines import HEADER, VERSION, line, placed, told
from undivided.store.horizon import seen
from undivided.store.queries.reading import is_id
from undivided.store.tail import Logged, Wanted, read_tail
from undivided.store.wording import in_camel_case

Progress = Callable[[int, int], None]

_EXISTS = "SELECT version FROM streams WHERE tenant = %s AND stream = %s AND version > 0"
_SESSIONS = "SELECT id FROM sessions WHERE tenant = %s AND agent_id = %s ORDER BY opened_at, id"
_SESSION = "SELECT agent_id FROM sessions WHERE tenant = %s AND id = %s"
_TURNS = "SELECT id, item_ids FROM turns WHERE tenant = %s AND session_id = %s"
_ITEMS = "SELECT id FROM items WHERE tenant = %s AND session_id = %s"
_TOLD = """
SELECT DISTINCT 'user:' || user_id FROM notifications WHERE tenant = %s AND agent_id = %s"""
_COUNT = """
SELECT coalesce(sum(version), 0)::bigint FROM streams WHERE tenant = %s AND stream = ANY(%s)"""

_OF_EVERY_SESSION = ("agent.", "policy.", "flight.")


class Subject(Struct, frozen=True, kw_only=True):
    """What is exported: `streams` to read, and which of their events belong to it."""

    kind: Literal["agent", "session"]
    id: str
    agent_id: str
    streams: tuple[str, ...]
    items: frozenset[str] | None = None
    """The items of a session; None where all belong."""
    turns: frozenset[str] = frozenset()

    def holds(self, one: Logged) -> bool:
        """Whether an event belongs to the export."""
        data = one.plain_data()
        if one.stream.startswith("user:"):
            return data.get("agent_id") == self.agent_id and self._has(data)
        if self.items is None or one.stream.startswith("session:"):
            return True
        return one.type.startswith(_OF_EVERY_SESSION) or self._has(data)

    def _has(self, data: dict[str, Any]) -> bool:
        if self.items is None:
            return True
        return data.get("item_id") in self.items or data.get("turn_id") in self.turns


async def subject_of(database: Database, name: str) -> Subject:
    """The agent, or else the session, of that id.

    Raises:
        NotFound: neither is there.
    """
    if is_id(name) and await _rows(database, _EXISTS, agent_stream(name)):
        sessions = [row[0] for row in await _rows(database, _SESSIONS, name)]
        notices = [row[0] for row in await _rows(database, _TOLD, name)]
        streams = (agent_stream(name), *map(session_stream, sessions), *notices)
        return Subject(kind="agent", id=name, agent_id=name, streams=streams)
    if is_id(name) and (found := await _rows(database, _SESSION, name)):
        return await _session(database, name, found[0][0])
    raise NotFound(f"there is no agent and no session {name[:128]}")


async def _session(database: Database, session_id: str, agent_id: str) -> Subject:
    turns = await _rows(database, _TURNS, session_id)
    waiting = [row[0] for row in await _rows(database, _ITEMS, session_id)]
    notices = [row[0] for row in await _rows(database, _TOLD, agent_id)]
    items = {item for _, ids in turns for item in ids}
    return Subject(
        kind="session",
        id=session_id,
        agent_id=agent_id,
        streams=(agent_stream(agent_id), session_stream(session_id), *notices),
        items=frozenset(items.union(waiting)),
        turns=frozenset(row[0] for row in turns),
    )


async def export(
    database: Database,
    name: str,
    redact: bool = False,
    on_progress: Progress = lambda _done, _all: None,
) -> AsyncIterator[str]:
    """The lines of an export, header first.

    Raises:
        NotFound: there is no such agent or session.
    """
    until = parse_coordinate(await seen(database))
    subject = await subject_of(database, name)
    ((total,),) = await _rows(database, _COUNT, list(subject.streams))
    yield line(_header(subject, until, redact))
    done, after = 0, ORIGIN
    while True:
        page = await read_tail(database, after, Wanted(streams=subject.streams, until=until))
        for one in page.events:
            if subject.holds(one):
                yield line(_redacted(one) if redact else told(one))
        done += len(page.events)
        on_progress(done, max(done, total))
        after = page.end
        if not page.full:
            return


def _header(subject: Subject, until: Coordinate, redact: bool) -> dict[str, Any]:
    return {
        HEADER: VERSION,
        "kind": subject.kind,
        "id": subject.id,
        "agentId": subject.agent_id,
        "position": str(until),
        "redacted": redact,
    }


def _redacted(one: Logged) -> dict[str, Any]:
    shown = told(one)
    recorded = placed(shown).recorded
    shown["data"] = in_camel_case(one.type, msgspec.to_builtins(redacted(recorded.event)))
    shown["meta"] = msgspec.to_builtins(redacted_meta(recorded.meta))
    return shown


async def _rows(database: Database, query: str, *values: object) -> list[Any]:
    async with database.connection() as connection:
        cursor = await connection.execute(query.encode(), (database.tenant, *values))
        return await cursor.fetchall()
