"""Import: a recorded history becomes new streams here, and rows as they were there.

Each transaction of the history is one transaction again, with the ids and times it had, so that
the rows folded from it are the same and every invariant that held there holds here. An import
that broke off is taken up where it stopped: what is there already, by the ids of its events, is
passed over.

Workers are kept away while it goes on: the import holds the advisory lock of every agent in it,
as a worker would, because half a history looks like work to do. Its events say that they were
imported, so that the time they tell is not taken for a time of this installation.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager

import msgspec
import psycopg
from msgspec import Struct
from msgspec.structs import replace

from undivided.domain.coordinates import ORIGIN, Coordinate
from undivided.domain.errors import Conflict, Rejected
from undivided.domain.events.agents import AgentCreated
from undivided.domain.placed import Placed
from undivided.domain.recorded import Recorded
from undivided.store import functions
from undivided.store.batch import Addition, encoded
from undivided.store.database import TENANT, Connection, Database
from undivided.store.log_pages import Kept
from undivided.store.sending import keep_blobs
from undivided.store.shadow import Shadow

History = Callable[[], Iterable[Sequence[Recorded]]]
"""Tells the transactions of a history from its beginning, each time it is called."""
Progress = Callable[[int, int], None]

_SHARED = "user:"
"""Streams that several histories write to: their events are put after what is there."""

_FIRST = """
SELECT stream, id::text FROM events WHERE tenant = %s AND stream = ANY(%s) AND version = 1"""
_THERE = "SELECT count(*) FROM events WHERE id = ANY(%s::uuid[])"
_VERSIONS = "SELECT stream, version FROM streams WHERE tenant = %s AND stream = ANY(%s)"


class Imported(Struct, kw_only=True):
    """What came in: events written now, and those that were there from an earlier try."""

    agents: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()
    written: int = 0
    present: int = 0


class _Contents(Struct):
    """What a history brings: its agents, and the first event of each stream."""

    agents: list[str] = []
    first: dict[str, str] = {}
    events: int = 0


async def import_history(
    urls: tuple[str, str], history: History, on_progress: Progress = lambda _done, _all: None
) -> Imported:
    """Write a history into this installation; `urls` are those of the service and past any pooler.

    Raises:
        Rejected: a stream of it is already there with another content, or somebody works on it.
        Conflict: somebody wrote to one of its streams meanwhile.
    """
    contents = _contents(history())
    database = Database(urls[0], size=1, name="undivided import")
    await database.open()
    try:
        async with (
            _kept_from_workers(urls[1], contents.agents),
            database.connection() as connection,
        ):
            await _refuse_others(connection, contents)
            imported = await _write_all(connection, history(), contents, on_progress)
    except psycopg.Error as error:
        if error.sqlstate != functions.CONFLICT:
            raise
        told = msgspec.json.decode(error.diag.message_detail or "{}")
        raise Conflict(told["stream"], told["expected"], told["actual"]) from error
    finally:
        await database.close()
    imported.agents = tuple(contents.agents)
    imported.sessions = tuple(
        stream.removeprefix("session:") for stream in contents.first if stream[:8] == "session:"
    )
    return imported


def _contents(history: Iterable[Sequence[Recorded]]) -> _Contents:
    contents = _Contents()
    for transaction in history:
        for recorded in transaction:
            contents.events += 1
            contents.first.setdefault(recorded.stream, recorded.id)
            if isinstance(recorded.event, AgentCreated):
                contents.agents.append(recorded.event.agent_id)
    return contents


@asynccontextmanager
async def _kept_from_workers(url: str, agents: Sequence[str]) -> AsyncIterator[None]:
    connection = await psycopg.AsyncConnection.connect(
        url, autocommit=True, application_name="undivided import locks", connect_timeout=5
    )
    async with connection:
        for agent_id in agents:
            cursor = await connection.execute(
                "SELECT pg_try_advisory_lock(hashtextextended(%s || '/' || %s, 0))",
                (TENANT, agent_id),
            )
            if await cursor.fetchone() != (True,):
                raise Rejected("agent_busy", f"a worker is at work on agent {agent_id}; stop it")
        yield


async def _refuse_others(connection: Connection, contents: _Contents) -> None:
    """Refuse a history that would run into another one; nothing is written yet."""
    own = [stream for stream in contents.first if not stream.startswith(_SHARED)]
    cursor = await connection.execute(_FIRST, (TENANT, own))
    for stream, event_id in await cursor.fetchall():
        if contents.first[stream] != event_id:
            raise Rejected(
                "already_there",
                f"{stream} is already here and is another history; "
                "import this one under another id with --as",
            )


async def _write_all(
    connection: Connection,
    history: Iterable[Sequence[Recorded]],
    contents: _Contents,
    on_progress: Progress,
) -> Imported:
    imported = Imported()
    counted: dict[str, int] = {}
    for transaction in history:
        numbered = _numbered(transaction, counted)
        if await _is_there(connection, transaction):
            imported.present += len(transaction)
        else:
            await _write(connection, numbered)
            imported.written += len(transaction)
        on_progress(imported.present + imported.written, contents.events)
    return imported


def _numbered(transaction: Sequence[Recorded], counted: dict[str, int]) -> list[Recorded]:
    """The events with the versions that they have when only they are in their streams."""
    numbered = []
    for recorded in transaction:
        counted[recorded.stream] = version = counted.get(recorded.stream, 0) + 1
        meta = replace(recorded.meta, imported=True)
        numbered.append(replace(recorded, version=version, meta=meta))
    return numbered


async def _is_there(connection: Connection, transaction: Sequence[Recorded]) -> bool:
    cursor = await connection.execute(_THERE, ([recorded.id for recorded in transaction],))
    (there,) = await cursor.fetchone() or (0,)
    if there not in (0, len(transaction)):
        raise Rejected("already_there", "a part of one of its transactions is already here")
    return bool(there)


async def _write(connection: Connection, transaction: list[Recorded]) -> None:
    streams = list(dict.fromkeys(recorded.stream for recorded in transaction))
    async with connection.transaction():
        await connection.execute("SELECT lock_streams(%s, %s)", (TENANT, streams))
        placed = await _after_what_is_there(connection, transaction)
        additions = [_addition(stream, placed) for stream in streams]
        write = encoded(additions, tuple(placed), {}, None)
        await keep_blobs(connection, TENANT, write.blobs)
        cursor = await connection.execute(
            "SELECT o_txid, o_position FROM log_write(%s, %s::jsonb)",
            (TENANT, write.body.decode()),
        )
        txid, position = await cursor.fetchone() or (0, 0)
        where = Coordinate(txid, position) if txid else ORIGIN
        await Shadow(connection, "public").take(
            Kept(TENANT, Placed(where, recorded)) for recorded in placed
        )


async def _after_what_is_there(
    connection: Connection, transaction: list[Recorded]
) -> list[Recorded]:
    """Events of shared streams get the versions that follow."""
    shared = {r.stream for r in transaction if r.stream.startswith(_SHARED)}
    if not shared:
        return transaction
    cursor = await connection.execute(_VERSIONS, (TENANT, list(shared)))
    versions: dict[str, int] = dict(await cursor.fetchall())
    placed = []
    for recorded in transaction:
        if recorded.stream in shared:
            versions[recorded.stream] = version = versions.get(recorded.stream, 0) + 1
            placed.append(replace(recorded, version=version))
        else:
            placed.append(recorded)
    return placed


def _addition(stream: str, transaction: Iterable[Recorded]) -> Addition:
    own = [recorded for recorded in transaction if recorded.stream == stream]
    return Addition(stream, own[0].version - 1, tuple(recorded.event for recorded in own))
