"""Append and fold: the only way into the log.

An append takes events for one or more streams, each with the version it expects, folds them
into the rows they touch, and writes both in one statement. Why nothing can go wrong between
the fold and the write:

- A row is folded only from events of one stream (see `projections/`). If the stream is still
  at the expected version, no other event can have reached the row since it was read.
- Producers of a busy stream take its lock before they read (`Log.locked`), so that they queue
  instead of colliding. A transaction that writes streams of others besides names them first
  (`also`), and all are locked in the order of their names; the flight comes after the streams,
  and the session's stream, which only the flight that holds the agent writes, last: one fixed
  order, no deadlock. `functions.py` says why these locks come before any row.
- A flight's append names its epoch. The statement share-locks the flight's row at that epoch;
  raising an epoch updates the row. Whichever comes first, a stale epoch never commits.

Streams stay correct when the process dies at any point: before COMMIT nothing is there, after
it everything is.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

import msgspec
import psycopg
from msgspec import Struct
from psycopg.pq.abc import PGresult

from undivided.domain.coordinates import Coordinate
from undivided.domain.errors import Conflict, Corrupt, NotFound, StaleFlight
from undivided.domain.events.catalogue import Event
from undivided.domain.recorded import Meta, Recorded, agent_stream
from undivided.domain.state.item import ItemRow
from undivided.domain.state.view import AgentView
from undivided.projections.table import BY_TABLE, Rows
from undivided.store import functions
from undivided.store.batch import (
    Addition,
    Fence,
    Write,
    folded_from,
    missing,
    number,
    step_call,
    written,
)
from undivided.store.codec import row_decoder
from undivided.store.database import Connection, Database
from undivided.store.exchange import Call, HotConnection, Statement, exchange

__all__ = ["Addition", "AgentTx", "Appended", "Fence", "Log"]

_LOCK_STREAMS = Statement(
    b"undivided_lock_streams",
    b"SELECT lock_streams($1, ARRAY(SELECT jsonb_array_elements_text($2::jsonb)))",
)
_VIEW = Statement(b"undivided_view", b"SELECT agent_view($1, $2, $3, $4)::text")
_BEGIN = Call(Statement(b"undivided_begin", b"BEGIN"))
_COMMIT = Call(Statement(b"undivided_commit", b"COMMIT"))
_view_of = row_decoder(AgentView)
# One look into the key for each id: without statistics a planner may prefer to read all there is.
_LOOK = (
    "SELECT t.id, to_jsonb(t)::text FROM jsonb_array_elements_text($2::jsonb) k(id),"
    " LATERAL (SELECT * FROM {} x WHERE x.tenant = $1 AND x.id = k.id OFFSET 0) t"
)
_LOAD = {
    table: Statement(f"undivided_load_{table}".encode(), _LOOK.format(table).encode())
    for table in BY_TABLE
}
_ROW_OF = {table: row_decoder(p.row) for table, p in BY_TABLE.items()}


class Appended(Struct, frozen=True):
    """What an append did: its coordinate, the events as recorded, the rows as folded."""

    coordinate: Coordinate
    events: tuple[Recorded, ...]
    rows: Rows


class Log:
    """The append side of one database."""

    def __init__(self, database: Database) -> None:
        self.database = database

    async def append(
        self, additions: Sequence[Addition], meta: Meta, fence: Fence | None = None
    ) -> Appended:
        """Append in one round trip. For events whose rows begin with them, or touch none.

        Raises:
            Conflict: a stream is not at the expected version.
            StaleFlight: `fence` names an epoch that is over.
            Unavailable: Postgres cannot be reached; whether it was written is then unknown.
        """
        folded = folded_from({}, number(additions, meta, await self._now()))
        tenant = self.database.tenant
        step = step_call(tenant, folded, fence)
        async with self.database.connection() as connection:
            if step is not None:
                (result,) = await exchange(connection, step)
                if result.ntuples:
                    return self._appended(result, folded.events, folded.rows)
            write = written(tenant, additions, folded, fence)
            await self._keep_blobs(connection, write)
            return await self._send(connection, write, fence)

    @asynccontextmanager
    async def locked(
        self, agent_id: str, queue: int = 0, also: tuple[str, ...] = ()
    ) -> AsyncIterator[AgentTx]:
        """Take the agent's row lock and read its view; leaving without an append changes nothing.

        `queue`: how many eligible items the view brings; 0 leaves queue, focus and flight out,
        and is for whoever does not append in the name of a flight. `also`: streams that others
        write too and that this transaction may append to.

        Raises:
            NotFound: there is no such agent.
        """
        async with self.database.connection() as connection:
            looking = self._looking(agent_id, queue, b"t")
            locking = self._locking(agent_stream(agent_id), *also) if also else ()
            results = await exchange(connection, _BEGIN, *locking, looking)
            view = _view(results[-1])
            if view.agent is None:
                raise NotFound(f"there is no agent {agent_id}")
            self.database.clock.heard(view.now)
            yield AgentTx(self, connection, view, queue, also)

    async def view(self, agent_id: str, queue: int = 0) -> AgentView:
        """The agent's view without a lock, for reading only; `agent` is None if unknown."""
        async with self.database.connection() as connection:
            (result,) = await exchange(connection, self._looking(agent_id, queue, b"f"))
        return _view(result)

    def _looking(self, agent_id: str, queue: int, lock: bytes) -> Call:
        if "\x00" in agent_id:
            raise NotFound("there is no agent with NUL in its id")
        values = (self.database.tenant.encode(), agent_id.encode(), lock, str(queue).encode())
        return Call(_VIEW, values)

    def _locking(self, *streams: str) -> tuple[Call]:
        names = msgspec.json.encode(streams)
        return (Call(_LOCK_STREAMS, (self.database.tenant.encode(), names)),)

    async def _now(self) -> datetime:
        if not self.database.clock.known:
            return await self.database.hear_clock()
        return self.database.clock.now()

    async def _keep_blobs(self, connection: Connection, write: Write) -> None:
        """Store what the events refer to, before them; a blob nobody refers to does no harm."""
        for name, content in write.blobs.items():
            await connection.execute(
                "INSERT INTO blobs (tenant, sha256, content) VALUES (%s, %s, %s)"
                " ON CONFLICT DO NOTHING",
                (self.database.tenant, name, content),
            )

    async def _send(
        self, connection: HotConnection, write: Write, fence: Fence | None, *after: Call
    ) -> Appended:
        """Send the batch, and in the same message what is to follow it."""
        try:
            results = await exchange(connection, *write.calls, *after)
        except psycopg.Error as error:
            raise _refusal(error, fence) from error
        return self._appended(results[write.told], write.events, write.rows)

    def _appended(self, result: PGresult, events: tuple[Recorded, ...], rows: Rows) -> Appended:
        txid, position, clock = (result.get_value(0, column) or b"0" for column in range(3))
        self.database.clock.heard(datetime.fromisoformat(clock.decode()))
        return Appended(Coordinate(int(txid), int(position)), events, rows)


class AgentTx:
    """One transaction about one agent, under its row lock. It appends once, and commits."""

    def __init__(
        self,
        log: Log,
        connection: HotConnection,
        view: AgentView,
        queue: int,
        also: tuple[str, ...],
    ) -> None:
        if view.agent is None:
            raise Corrupt("a transaction about an agent needs the agent")
        self._log, self.connection, self._queue, self._also = log, connection, queue, also
        self.view, self.agent = view, view.agent

    async def row(self, table: str, row_id: str) -> Any | None:
        """One projected row as this transaction sees it."""
        found = await _load(self.connection, self._log.database.tenant, {table: {row_id}})
        return found[(table, row_id)]

    async def waiting(self, types: Sequence[str], limit: int) -> tuple[ItemRow, ...]:
        """The best eligible items of some types, past those of the view."""
        cursor = await self.connection.execute(
            "SELECT to_jsonb(i)::text FROM items i WHERE i.tenant = %s AND i.agent_id = %s"
            " AND i.status = 'queued' AND i.source_type = ANY(%s)"
            " AND (i.not_before IS NULL OR i.not_before <= clock_timestamp())"
            " ORDER BY i.priority, i.seq LIMIT %s",
            (self._log.database.tenant, self.agent.id, list(types), limit),
        )
        return tuple(_ROW_OF["items"](text) for (text,) in await cursor.fetchall())

    async def version(self, stream: str) -> int:
        """The version that another stream is at; 0 if it does not exist."""
        cursor = await self.connection.execute(
            "SELECT version FROM streams WHERE tenant = %s AND stream = %s",
            (self._log.database.tenant, stream),
        )
        row = await cursor.fetchone()
        return row[0] if row else 0

    async def locked_version(self, stream: str) -> int:
        """The version of a stream named in `also`, made if it is not there.

        Raises:
            Corrupt: it was not named, so that its order in the log would be left to chance.
        """
        if stream not in self._also:
            raise Corrupt(f"stream {stream} was not named when the transaction began")
        tenant = self._log.database.tenant
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
        recorded = number(additions, meta, self._log.database.clock.now())
        rows: Rows = {**self._in_hand(), **(known or {})}
        wanted = missing(rows, recorded)
        rows |= await _load(self.connection, self._log.database.tenant, wanted)
        write = written(self._log.database.tenant, additions, folded_from(rows, recorded), fence)
        await self._log._keep_blobs(self.connection, write)
        return await self._log._send(self.connection, write, fence, _COMMIT)

    def addition(self, *events: Event) -> Addition:
        """`events` for this agent's own stream."""
        return Addition(agent_stream(self.agent.id), self.view.version, events)

    def _in_hand(self) -> Rows:
        view = self.view
        rows: Rows = {("agents", self.agent.id): self.agent}
        if self._queue > 0:  # else the view did not look for a flight
            rows[("flights", self.agent.id)] = view.flight
        rows |= {("items", item.id): item for item in (*view.queue, *view.focus)}
        return rows


async def _load(connection: HotConnection, tenant: str, wanted: Mapping[str, set[str]]) -> Rows:
    """The rows that are wanted of each table, in one round trip."""
    if not wanted:
        return {}
    calls = [
        Call(_LOAD[table], (tenant.encode(), msgspec.json.encode(list(ids))))
        for table, ids in wanted.items()
    ]
    rows: Rows = {(table, row_id): None for table, ids in wanted.items() for row_id in ids}
    for table, result in zip(wanted, await exchange(connection, *calls), strict=True):
        for n in range(result.ntuples):
            row_id, text = result.get_value(n, 0) or b"", result.get_value(n, 1) or b""
            rows[(table, row_id.decode())] = _ROW_OF[table](text.decode())
    return rows


def _view(result: PGresult) -> AgentView:
    text = result.get_value(0, 0)
    if text is None:
        raise Corrupt("agent_view answered nothing")
    return _view_of(text.decode())


def _refusal(error: psycopg.Error, fence: Fence | None) -> Exception:
    if error.sqlstate == functions.CONFLICT:
        told = msgspec.json.decode(error.diag.message_detail or "{}")
        return Conflict(told["stream"], told["expected"], told["actual"])
    if error.sqlstate == functions.STALE_FLIGHT and fence is not None:
        return StaleFlight(fence.agent_id, fence.epoch)
    return error
