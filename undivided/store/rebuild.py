"""Rebuilding projections from the log while everybody goes on working.

The log is folded into shadow tables beside the live ones, as far as it is settled, again and
again until hardly anything is missing. Then, in one short transaction:

1. `streams` is locked against writers. Every append takes a row lock there, and a decision under
   the agent's lock takes it before it reads, so that the lock is granted once all of those in
   flight have committed, and whoever comes now waits. Who goes by rows that were read without
   the lock, or remembered, is refused by the new edition (`log_edition`). So nobody can have read
   a row of the old table and write it to the new one.
2. What was committed since is folded: the events of the few milliseconds since the last look,
   and of those that step 1 waited for. That is all an append ever waits for.
3. The tables change places under an exclusive lock of their own, which waits for queries that
   are under way and lets the next ones find the new tables: a statement that waits for a table
   looks its name up again once it may go on. No query sees an empty table.

All locks are asked for with a timeout far below the one after which Postgres looks for
deadlocks: whatever else holds a lock and waits for one of ours gets it, and the rebuild tries
again a moment later.

Nothing changes places before the shadow is complete; a rebuild that dies leaves a schema that
the next one removes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import psycopg
from msgspec import Struct
from psycopg import sql

from undivided.domain.coordinates import ORIGIN, Coordinate
from undivided.domain.errors import Invalid, Rejected, Unavailable
from undivided.store import shadow_tables
from undivided.store.database import Connection
from undivided.store.log_pages import EVERYTHING, pieces, settled
from undivided.store.shadow import NEW_EDITION, Shadow
from undivided.store.tables import PROJECTED

Progress = Callable[[int, int], None]
"""Told from time to time how many events of how many are folded."""

NEARLY_THERE = 500
"""So few events may be missing when writers are asked to wait."""
ATTEMPTS = 60
_LOCK_TIMEOUT = "250ms"
_PAUSE_S = (0.01, 0.5)
_ONE_AT_A_TIME = 7_305_813_045

_EVENTS = "SELECT coalesce(sum(version), 0)::bigint FROM streams"
_BEHIND = "SELECT count(*) FROM (SELECT 1 FROM events WHERE (txid, position) > (%s, %s) LIMIT %s) b"


class Rebuilt(Struct, frozen=True):
    """What was rebuilt: the tables, how many events were folded, and where the log stood."""

    tables: tuple[str, ...]
    events: int
    horizon: Coordinate


async def rebuild(
    owner_url: str,
    projection: str | None = None,
    on_progress: Progress = lambda _done, _all: None,
) -> Rebuilt:
    """Fold one projection, or all of them, anew and put the result in place.

    `owner_url`: the role that owns the tables, past any pooler.

    Raises:
        Invalid: there is no such projection.
        Rejected: another rebuild is under way, or writers never let it finish.
        Corrupt: an event cannot be read; the rows stay as they are.
    """
    tables = [table for table in PROJECTED if projection in (None, table.name)]
    if not tables:
        known = ", ".join(table.name for table in PROJECTED)
        raise Invalid(f"there is no projection {projection!r}; one of: {known}", "projection")
    names = [table.name for table in tables]
    async with _alone(owner_url) as connection:
        try:
            await shadow_tables.create(connection, names)
            fold = _Fold(connection, Shadow(connection, shadow_tables.SHADOW, tables), on_progress)
            await fold.catch_up()
            await shadow_tables.complete(connection, names)
            await fold.catch_up()
            await _change_places(fold, names)
        finally:
            if not connection.broken:
                await shadow_tables.clear(connection)
    return Rebuilt(tuple(names), fold.events, fold.reached)


class _Fold:
    """A shadow, and how far into the log it has come."""

    def __init__(self, connection: Connection, shadow: Shadow, on_progress: Progress) -> None:
        self.connection = connection
        self.reached, self.events = ORIGIN, 0
        self._shadow, self._on_progress = shadow, on_progress

    async def catch_up(self) -> None:
        """Fold everything that is settled."""
        cursor = await self.connection.execute(_EVENTS)
        (total,) = await cursor.fetchone() or (0,)
        await self.fold_below(await settled(self.connection), total)

    async def fold_below(self, txid: int, total: int = 0) -> None:
        """Fold everything below a transaction id."""
        async for piece in pieces(self.connection, self.reached, txid):
            await self._shadow.take(piece)
            self.reached = piece[-1].placed.coordinate
            self.events += len(piece)
            self._on_progress(self.events, max(total, self.events))

    async def behind(self) -> int:
        """How many events are missing, as far as that is more than few."""
        values = (self.reached.txid, self.reached.position, NEARLY_THERE + 1)
        cursor = await self.connection.execute(_BEHIND, values)
        (missing,) = await cursor.fetchone() or (0,)
        return int(missing)


@asynccontextmanager
async def _alone(url: str) -> AsyncIterator[Connection]:
    """The owner's connection, and the right to rebuild, which one process has at a time."""
    try:
        connection = await psycopg.AsyncConnection.connect(
            url, autocommit=True, application_name="undivided rebuild", connect_timeout=5
        )
        async with connection:
            cursor = await connection.execute("SELECT pg_try_advisory_lock(%s)", (_ONE_AT_A_TIME,))
            if await cursor.fetchone() != (True,):
                raise Rejected("rebuild_under_way", "another rebuild is under way; wait for it")
            yield connection
            # Said aloud, for Postgres takes a moment to notice that a connection was closed.
            await connection.execute("SELECT pg_advisory_unlock(%s)", (_ONE_AT_A_TIME,))
    except psycopg.errors.InsufficientPrivilege as error:
        raise Rejected(
            "not_owner",
            "a rebuild makes tables: it needs the role that owns them; "
            f"set DATABASE_OWNER_URL ({error.diag.message_primary})",
        ) from error
    except psycopg.OperationalError as error:
        raise Unavailable(f"the rebuild lost the database: {error}") from error


async def _change_places(fold: _Fold, names: Sequence[str]) -> None:
    pause_s, longest_s = _PAUSE_S
    for _ in range(ATTEMPTS):
        await fold.catch_up()
        if await fold.behind() <= NEARLY_THERE and await _attempt(fold, names):
            return
        await asyncio.sleep(pause_s)
        pause_s = min(2 * pause_s, longest_s)
    raise Rejected(
        "rebuild_busy",
        "the rebuilt rows never got their turn: a transaction stays open all the time; "
        "look for it in pg_stat_activity and try again",
    )


async def _attempt(fold: _Fold, names: Sequence[str]) -> bool:
    """Change places now, if every lock is granted soon; what was folded meanwhile is kept."""
    connection, before = fold.connection, (fold.reached, fold.events)
    try:
        async with connection.transaction():
            await connection.execute(sql.SQL("SET LOCAL lock_timeout = {}").format(_LOCK_TIMEOUT))
            await connection.execute("LOCK TABLE streams IN EXCLUSIVE MODE")
            await fold.fold_below(EVERYTHING)
            tables = sql.SQL(", ").join(sql.Identifier("public", name) for name in names)
            await connection.execute(
                sql.SQL("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE").format(tables)
            )
            await shadow_tables.put_in_place(connection, names)
            await connection.execute(NEW_EDITION)
    except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected):
        fold.reached, fold.events = before
        return False
    return True
