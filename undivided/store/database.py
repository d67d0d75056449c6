"""The way to Postgres: a pool of autocommit connections, and the database's clock.

Connections are in autocommit: a hot statement is its own transaction and one round trip. What
needs more says BEGIN itself, in the same message as its first statement.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta

import psycopg
from psycopg import AsyncConnection
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from undivided.domain.errors import Unavailable
from undivided.store.exchange import ROLLBACK, HotConnection, exchange
from undivided.store.restored import keep_order

Connection = AsyncConnection[TupleRow]
TENANT = "default"
_OPEN = (TransactionStatus.INTRANS, TransactionStatus.INERROR)


class DatabaseClock:
    """The database's clock, carried on between round trips by the machine's steady clock.

    `recorded_at` must be known before an append, because reducers fold with it; this tells it
    without a round trip. A worker whose wall clock is wrong, or jumps, records the same times
    as any other. Leases and due times are never judged here but by Postgres itself.
    """

    def __init__(self) -> None:
        self._at: datetime | None = None
        self._steady = 0.0

    def heard(self, at: datetime) -> None:
        """Take over a time that Postgres has just told."""
        self._at, self._steady = at, _steady()

    @property
    def known(self) -> bool:
        """Whether Postgres was heard at all."""
        return self._at is not None

    def now(self) -> datetime:
        """The database's time, within a round trip's error; needs one `heard` before."""
        if self._at is None:
            raise Unavailable("the database's clock was not heard yet")
        return self._at + timedelta(seconds=_steady() - self._steady)


def _steady() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Database:
    """A pool of connections as one role, for one tenant."""

    def __init__(self, url: str, size: int = 10, name: str = "undivided") -> None:
        self.clock = DatabaseClock()
        self.tenant = TENANT
        self._pool: AsyncConnectionPool[HotConnection] = AsyncConnectionPool(
            url,
            connection_class=HotConnection,
            min_size=1,
            max_size=size,
            open=False,
            timeout=5,
            reconnect_timeout=2,
            configure=keep_order,
            kwargs={
                "autocommit": True,
                "application_name": name,
                "connect_timeout": 5,
                "prepare_threshold": 3,
            },
        )

    async def open(self) -> None:
        """Start filling the pool; does not wait for Postgres to be there."""
        await self._pool.open(wait=False)

    async def close(self) -> None:
        """Give every connection back to Postgres."""
        await self._pool.close()

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[HotConnection]:
        """Borrow a connection; it is never held across a model, tool or network call.

        What is not committed when it is given back is rolled back.

        Raises:
            Unavailable: Postgres cannot be reached, or went away meanwhile.
        """
        try:
            connection = await self._pool.getconn()
            try:
                yield connection
            finally:
                await self._give_back(connection)
        except (psycopg.OperationalError, psycopg.InterfaceError, PoolTimeout) as error:
            if isinstance(error, psycopg.errors.QueryCanceled):
                raise
            raise Unavailable(
                "the database cannot be reached; the same call can succeed later"
            ) from error

    async def _give_back(self, connection: HotConnection) -> None:
        """To the pool, which closes what is broken. Quicker than the pool's own context."""
        try:
            if connection.info.transaction_status in _OPEN:
                await exchange(connection, ROLLBACK)
        finally:
            await self._pool.putconn(connection)

    async def hear_clock(self) -> datetime:
        """Ask Postgres for its time and carry it on from here."""
        async with self.connection() as connection:
            cursor = await connection.execute("SELECT clock_timestamp()")
            row = await cursor.fetchone()
        at = row[0] if row else None
        if not isinstance(at, datetime):
            raise Unavailable("the database did not tell its time")
        self.clock.heard(at)
        return at

    @property
    def borrowed(self) -> int:
        """Connections out of the pool right now."""
        stats = self._pool.get_stats()
        return stats.get("pool_size", 0) - stats.get("pool_available", 0)
