"""One transaction about one agent: what it knows, what it reads besides, what it appends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from msgspec.structs import replace

from undivided.domain.errors import Corrupt
from undivided.domain.events.catalogue import Event
from undivided.domain.merging import JOINED_CHARACTERS, JOINED_ITEMS
from undivided.domain.recorded import Meta, agent_stream
from undivided.domain.state.item import ItemRow, Queued
from undivided.domain.state.view import AgentView
from undivided.projections.table import Rows
from undivided.store.batch import Addition, Fence, Guards, folded_from, missing, number, written
from undivided.store.codec import escape_text
from undivided.store.database import Database
from undivided.store.exchange import COMMIT, HotConnection, exchange
from undivided.store.looks import ROW_OF, SessionLook, load_rows, session_call, session_in
from undivided.store.sending import Appended, send

Basis = Literal["locked", "unlocked"]
"""What a view rests on: the agent's row lock, or nothing but that the agent's stream and the
edition of its rows are still the same when it appends."""


_WAITING = """
SELECT to_jsonb(i)::text FROM items i
 WHERE i.tenant = %s AND i.agent_id = %s AND i.status = 'queued' AND i.source_type = ANY(%s)
   AND (i.not_before IS NULL OR i.not_before <= clock_timestamp())
 ORDER BY i.priority, i.seq LIMIT %s"""
_QUEUED_BEFORE = """
SELECT to_jsonb(i)::text FROM items i
 WHERE i.tenant = %s AND i.agent_id = %s AND i.status = 'queued'
   AND coalesce((i.phase->>'since')::timestamptz, i.queued_at) < %s
 ORDER BY coalesce((i.phase->>'since')::timestamptz, i.queued_at) LIMIT %s"""
_JOINABLE = """
SELECT DISTINCT ON (i.merge_key) i.merge_key, to_jsonb(i)::text
  FROM unnest(%s::text[], %s::int[]) AS w (key, characters)
  JOIN items i ON i.merge_key = w.key AND i.status = 'queued'
 WHERE i.tenant = %s AND i.agent_id = %s
   AND (i.not_before IS NULL OR i.not_before <= clock_timestamp()
        OR i.phase->'coalescing' = 'true')
   AND i.merged < %s AND i.merged_chars + w.characters <= %s
 ORDER BY i.merge_key, i.priority, i.seq"""
_FAMILY = """
WITH RECURSIVE family AS (
  SELECT i.* FROM items i WHERE i.tenant = %s AND i.merged_into = %s
  UNION SELECT i.* FROM items i JOIN family f ON i.merged_into = f.id AND i.tenant = f.tenant)
SELECT to_jsonb(f)::text FROM family f ORDER BY f.seq"""


class AgentTx:
    """It appends once, and commits."""

    def __init__(
        self,
        database: Database,
        connection: HotConnection,
        view: AgentView,
        queue: int,
        basis: Basis,
        also: tuple[str, ...] = (),
    ) -> None:
        if view.agent is None:
            raise Corrupt("a transaction about an agent needs the agent")
        self.connection = connection
        self.view, self.agent = view, view.agent
        self._database, self._queue, self._basis, self._also = database, queue, basis, also
        self._sessions: dict[str, SessionLook] = {}

    async def row(self, table: str, row_id: str) -> Any | None:
        """One projected row as this transaction sees it."""
        found = await load_rows(self.connection, self._database.tenant, {table: {row_id}})
        return found[(table, row_id)]

    async def session(self, session_id: str) -> SessionLook:
        """A session and the version of its stream."""
        if session_id not in self._sessions:
            call = session_call(self._database.tenant, session_id)
            (result,) = await exchange(self.connection, call)
            self._sessions[session_id] = session_in(result)
        return self._sessions[session_id]

    def knows(self, session_id: str, look: SessionLook) -> None:
        """Take over a session that was read together with the view, or is known already."""
        self._sessions[session_id] = look

    async def waiting(self, types: Sequence[str], limit: int) -> tuple[ItemRow, ...]:
        """The best eligible items of some types, past those of the view."""
        cursor = await self.connection.execute(
            _WAITING, (self._database.tenant, self.agent.id, list(types), limit)
        )
        return tuple(ROW_OF["items"](text) for (text,) in await cursor.fetchall())

    async def queued_before(self, moment: datetime, limit: int) -> tuple[ItemRow, ...]:
        """The items that have waited longest, of those that wait since before a moment."""
        about = self._database.tenant, self.agent.id
        cursor = await self.connection.execute(_QUEUED_BEFORE, (*about, moment, limit))
        return tuple(ROW_OF["items"](text) for (text,) in await cursor.fetchall())

    async def can_be_joined(self, keys: Mapping[str, int]) -> dict[str, ItemRow]:
        """The first waiting item of each key that has room for so many characters more.

        One that is to be tried again later is left out: what is new need not wait for that.
        """
        wanted = [escape_text(key) for key in keys], list(keys.values())
        about = self._database.tenant, self.agent.id, JOINED_ITEMS, JOINED_CHARACTERS
        cursor = await self.connection.execute(_JOINABLE, (*wanted, *about))
        rows = (ROW_OF["items"](text) for _, text in await cursor.fetchall())
        return {row.merge_key: row for row in rows}

    async def joined(self, item: ItemRow) -> tuple[ItemRow, ...]:
        """Everything that has joined an item, and what had joined that, in order of arrival."""
        if item.merged == 0:
            return ()
        cursor = await self.connection.execute(_FAMILY, (self._database.tenant, item.id))
        return tuple(ROW_OF["items"](text) for (text,) in await cursor.fetchall())

    async def locked_version(self, stream: str) -> int:
        """The version of a stream named in `also`, made if it is not there.

        Raises:
            Corrupt: it was not named, so that its order in the log would be left to chance.
        """
        if stream not in self._also:
            raise Corrupt(f"stream {stream} was not named when the transaction began")
        tenant = self._database.tenant
        await self.connection.execute(
            "INSERT INTO streams (tenant, stream, version) VALUES (%s, %s, 0)"
            " ON CONFLICT DO NOTHING",
            (tenant, stream),
        )
        cursor = await self.connection.execute(
            "SELECT version FROM streams WHERE tenant = %s AND stream = %s FOR UPDATE",
            (tenant, stream),
        )
        row = await cursor.fetchone()
        return row[0] if row else 0

    async def append(
        self,
        additions: Sequence[Addition],
        meta: Meta,
        fence: Fence | None = None,
        known: Mapping[tuple[str, str], Any] | None = None,
    ) -> Appended:
        """Append, fold and commit. `known`: rows that the caller holds at their last version.

        Raises:
            Conflict, StaleFlight: nothing was written.
        """
        tenant = self._database.tenant
        recorded = number(additions, meta, self._database.clock.now())
        rows: Rows = {**self._in_hand(), **(known or {})}
        rows |= await load_rows(self.connection, tenant, missing(rows, recorded))
        guards = self._guards(fence)
        write = written(tenant, additions, folded_from(rows, recorded), guards)
        after = (COMMIT,) if self._basis == "locked" else ()
        return await send(self._database, self.connection, write, guards, *after)

    def addition(self, *events: Event, behind: int = 0, meta: Meta | None = None) -> Addition:
        """`events` for this agent's own stream, `behind` so many others of the same append."""
        return Addition(agent_stream(self.agent.id), self.view.version + behind, events, meta)

    def view_after(self, appended: Appended) -> AgentView:
        """What the view has become by an append of this transaction; its focus is left out."""
        agent_id, rows, view = self.agent.id, appended.rows, self.view
        stream = agent_stream(agent_id)
        return replace(
            view,
            version=view.version + sum(one.stream == stream for one in appended.events),
            agent=rows.get(("agents", agent_id), self.agent),
            flight=rows.get(("flights", agent_id), view.flight),
            queue=self._queue_after(rows) if self._queue > 0 else (),
            focus=(),
        )

    def _queue_after(self, rows: Rows) -> tuple[ItemRow, ...]:
        items: dict[str, ItemRow] = {item.id: item for item in self.view.queue}
        items |= {row_id: row for (table, row_id), row in rows.items() if table == "items"}
        waiting = (item for item in items.values() if _is_due(item, self.view.now))
        return tuple(sorted(waiting, key=lambda item: (item.priority, item.seq)))

    def _guards(self, fence: Fence | None) -> Guards:
        if self._basis == "locked":
            return Guards(fence, None, self.view.edition)
        takes = self.agent.id if fence is None and self._queue > 0 else None
        return Guards(fence, takes, self.view.edition)

    def _in_hand(self) -> Rows:
        view = self.view
        rows: Rows = {("agents", self.agent.id): self.agent}
        if self._queue > 0:  # else the view did not look for a flight
            rows[("flights", self.agent.id)] = view.flight
        rows |= {("items", item.id): item for item in (*view.queue, *view.focus)}
        return rows


def _is_due(item: ItemRow, now: datetime) -> bool:
    phase = item.phase
    return isinstance(phase, Queued) and (phase.not_before is None or phase.not_before <= now)
