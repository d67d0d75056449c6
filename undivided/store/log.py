"""Append and fold: the only way into the log.

An append takes events for one or more streams, each with the version it expects, folds them
into the rows they touch, and writes both in one statement. Why nothing can go wrong between
the fold and the write:

- A row is folded only from events of one stream (see `projections/`). If the stream is still
  at the expected version, no other event can have reached the row since it was read.
- Producers of a busy stream take its row lock before they read (`Log.locked`), so that they
  queue instead of colliding. A transaction that locks several streams has the agent's first;
  the session's stream is written only by the flight that holds the agent, and a user's
  stream last: one fixed order, no deadlock.
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
from msgspec import Raw, Struct

from undivided.domain.coordinates import Coordinate
from undivided.domain.errors import Conflict, Corrupt, NotFound, StaleFlight
from undivided.domain.events.catalogue import Event
from undivided.domain.recorded import Meta, Recorded, agent_stream
from undivided.domain.state.agent import AgentRow
from undivided.domain.state.view import AgentView
from undivided.projections.table import BY_TABLE, Rows, touched
from undivided.store import functions
from undivided.store.codec import encode, encode_event, escape_text, name_of, row_decoder
from undivided.store.database import Connection, Database
from undivided.store.fresh import fresh_event_id

_APPEND = "SELECT o_txid, o_position, o_clock FROM log_append(%s, %s::jsonb)"
_BEGIN_VIEW = "BEGIN; SELECT agent_view(%s, %s, true, %s)::text"
_VIEW = "SELECT agent_view(%s, %s, false, %s)::text"
_to_json = msgspec.json.Encoder().encode
_view_of = row_decoder(AgentView)
_ROW_OF = {table: row_decoder(p.row) for table, p in BY_TABLE.items()}


class Addition(Struct, frozen=True):
    """Events for one stream that must be at `expected` (0: it must not exist yet)."""

    stream: str
    expected: int
    events: tuple[Event, ...]


class Fence(Struct, frozen=True):
    """The flight in whose name an append is made."""

    agent_id: str
    epoch: int


class Appended(Struct, frozen=True):
    """What an append did: its coordinate, the events as recorded, the rows as folded."""

    coordinate: Coordinate
    events: tuple[Recorded, ...]
    rows: Rows


class _Write(Struct):
    """Events numbered, folded and encoded, ready to be sent."""

    body: str
    events: tuple[Recorded, ...]
    rows: Rows
    blobs: dict[str, bytes]


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
        recorded = _number(additions, meta, await self._now())
        rows = _fold_from({}, recorded, frozenset())
        write = _encode(additions, recorded, rows, fence)
        async with self.database.connection() as connection:
            await self._keep_blobs(connection, write)
            return await self._send(connection, _APPEND, write, fence)

    @asynccontextmanager
    async def locked(self, agent_id: str, queue: int = 0) -> AsyncIterator[AgentTx]:
        """Take the agent's row lock and read its view; leaving without an append changes nothing.

        `queue`: how many eligible items the view brings; 0 leaves queue, focus and flight out.

        Raises:
            NotFound: there is no such agent.
        """
        async with self.database.connection() as connection:
            cursor = psycopg.AsyncClientCursor(connection)
            try:
                await cursor.execute(_BEGIN_VIEW, (self.database.tenant, agent_id, queue))
                cursor.nextset()
                row = await cursor.fetchone()
                view = _view_of(row[0]) if row else None
                if view is None or view.agent is None:
                    raise NotFound(f"there is no agent {agent_id}")
                self.database.clock.heard(view.now)
                yield AgentTx(self, connection, view, view.agent)
            finally:
                await _end(connection)

    async def view(self, agent_id: str, queue: int = 0) -> AgentView:
        """The agent's view without a lock, for reading only; `agent` is None if unknown."""
        async with self.database.connection() as connection:
            cursor = await connection.execute(_VIEW, (self.database.tenant, agent_id, queue))
            row = await cursor.fetchone()
        if row is None:
            raise Corrupt("agent_view answered nothing")
        return _view_of(row[0])

    async def _now(self) -> datetime:
        if not self.database.clock.known:
            return await self.database.hear_clock()
        return self.database.clock.now()

    async def _keep_blobs(self, connection: Connection, write: _Write) -> None:
        """Store what the events refer to, before them; a blob nobody refers to does no harm."""
        for name, content in write.blobs.items():
            await connection.execute(
                "INSERT INTO blobs (tenant, sha256, content) VALUES (%s, %s, %s)"
                " ON CONFLICT DO NOTHING",
                (self.database.tenant, name, content),
            )

    async def _send(
        self, connection: Connection, statement: str, write: _Write, fence: Fence | None
    ) -> Appended:
        cursor = (
            psycopg.AsyncClientCursor(connection)
            if statement is not _APPEND
            else connection.cursor()
        )
        try:
            await cursor.execute(statement, (self.database.tenant, write.body))
        except psycopg.Error as error:
            raise _refusal(error, fence) from error
        row = await cursor.fetchone()
        if row is None:
            raise Corrupt("log_append answered nothing")
        txid, position, clock = row
        self.database.clock.heard(clock)
        return Appended(Coordinate(txid, position or 0), write.events, write.rows)


class AgentTx:
    """One transaction about one agent, under its row lock. It appends once, and commits."""

    def __init__(self, log: Log, connection: Connection, view: AgentView, agent: AgentRow) -> None:
        self._log, self.connection = log, connection
        self.view, self.agent = view, agent

    async def row(self, table: str, row_id: str) -> Any | None:
        """One projected row as this transaction sees it."""
        found = await _load(self.connection, self._log.database.tenant, table, {row_id})
        return found[(table, row_id)]

    async def version(self, stream: str) -> int:
        """The version that another stream is at; 0 if it does not exist."""
        cursor = await self.connection.execute(
            "SELECT version FROM streams WHERE tenant = %s AND stream = %s",
            (self._log.database.tenant, stream),
        )
        row = await cursor.fetchone()
        return row[0] if row else 0

    async def locked_version(self, stream: str) -> int:
        """The version of a stream that others write too, locked until this transaction ends."""
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
        recorded = _number(additions, meta, self._log.database.clock.now())
        rows: Rows = {**self._in_hand(), **(known or {})}
        for table, ids in _missing(rows, recorded).items():
            rows |= await _load(self.connection, self._log.database.tenant, table, ids)
        changed = _fold_from(rows, recorded, frozenset(rows))
        write = _encode(additions, recorded, changed, fence)
        await self._log._keep_blobs(self.connection, write)
        return await self._log._send(self.connection, _APPEND + "; COMMIT", write, fence)

    def addition(self, *events: Event) -> Addition:
        """`events` for this agent's own stream."""
        return Addition(agent_stream(self.agent.id), self.view.version, events)

    def _in_hand(self) -> Rows:
        view = self.view
        rows: Rows = {("agents", self.agent.id): self.agent}
        if view.flight is not None:
            rows[("flights", self.agent.id)] = view.flight
        rows |= {("items", item.id): item for item in (*view.queue, *view.focus)}
        return rows


async def _end(connection: Connection) -> None:
    """Roll back whatever was not committed; a broken connection has nothing to roll back."""
    if connection.broken or connection.closed:
        return
    if connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
        await connection.execute("ROLLBACK")


def _number(additions: Sequence[Addition], meta: Meta, at: datetime) -> tuple[Recorded, ...]:
    return tuple(
        Recorded(fresh_event_id(), a.stream, a.expected + n, event, meta, at)
        for a in additions
        for n, event in enumerate(a.events, start=1)
    )


def _missing(rows: Rows, recorded: tuple[Recorded, ...]) -> dict[str, set[str]]:
    """The rows that a fold needs and nobody has in hand, by table."""
    missing: dict[str, set[str]] = {}
    born: set[tuple[str, str]] = set()
    for one in recorded:
        kind = type(one.event).__name__
        for projection, key in touched(one):
            place = (projection.table, key)
            if kind in projection.births:
                born.add(place)
            elif place not in rows and place not in born:
                missing.setdefault(projection.table, set()).add(key)
    return missing


def _fold_from(
    rows: Rows, recorded: tuple[Recorded, ...], known: frozenset[tuple[str, str]]
) -> Rows:
    """Fold into `rows`; answers only the rows that changed."""
    before = dict(rows)
    changed: Rows = {}
    for one in recorded:
        for projection, key in touched(one):
            place = (projection.table, key)
            row = projection.reduce(key, rows.get(place), one)
            rows[place] = changed[place] = row
    return {p: row for p, row in changed.items() if p not in known or row != before.get(p)}


async def _load(connection: Connection, tenant: str, table: str, ids: set[str]) -> Rows:
    statement = psycopg.sql.SQL(
        "SELECT t.id, to_jsonb(t)::text FROM {} t WHERE t.tenant = %s AND t.id = ANY(%s)"
    ).format(psycopg.sql.Identifier(table))
    cursor = await connection.execute(statement, (tenant, list(ids)))
    found = {(table, row_id): _ROW_OF[table](text) for row_id, text in await cursor.fetchall()}
    return {(table, row_id): found.get((table, row_id)) for row_id in ids}


def _encode(
    additions: Sequence[Addition],
    recorded: tuple[Recorded, ...],
    rows: Rows,
    fence: Fence | None,
) -> _Write:
    blobs: dict[str, bytes] = {}
    events = [_event_json(one, blobs) for one in recorded]
    kept: dict[str, list[Raw]] = {}
    gone: dict[str, list[str]] = {}
    for (table, row_id), row in rows.items():
        if row is None:
            gone.setdefault(table, []).append(escape_text(row_id))
        else:
            kept.setdefault(table, []).append(Raw(encode(row)))
    body: dict[str, Any] = {
        "at": recorded[0].at if recorded else None,
        "streams": [
            {"stream": a.stream, "expected": a.expected, "grown": len(a.events)} for a in additions
        ],
        "events": events,
        "rows": kept,
        "gone": gone,
    }
    if fence is not None:
        body["fence"] = {"agent": fence.agent_id, "epoch": fence.epoch}
    return _Write(_to_json(body).decode(), recorded, rows, blobs)


def _event_json(one: Recorded, blobs: dict[str, bytes]) -> dict[str, Any]:
    name, schema = name_of(one.event)
    data, large = encode_event(one.event)
    blobs |= large
    return {
        "id": one.id,
        "stream": one.stream,
        "version": one.version,
        "type": name,
        "schema": schema,
        "data": Raw(data),
        "meta": Raw(encode(one.meta)),
        "bytes": len(data),
    }


def _refusal(error: psycopg.Error, fence: Fence | None) -> Exception:
    if error.sqlstate == functions.CONFLICT:
        told = msgspec.json.decode(error.diag.message_detail or "{}")
        return Conflict(told["stream"], told["expected"], told["actual"])
    if error.sqlstate == functions.STALE_FLIGHT and fence is not None:
        return StaleFlight(fence.agent_id, fence.epoch)
    return error
