"""The lock connection: one per worker process, on which it holds the agents it works on.

A session advisory lock lives exactly as long as its connection: when the process dies the
kernel closes the socket, Postgres ends the backend, and every lock is free and visibly so in
`pg_locks` at once. The connection is in autocommit and never inside a transaction, so that it
pins no snapshot, and goes straight to Postgres: a pooler in transaction mode would hand it
from backend to backend and strand the locks.

Session locks are re-entrant within a connection, so that a second `try` of the same process
would succeed too: `held` is what makes them exclusive within the process.

The lock is for politeness and for noticing death; the epoch is the truth. Losing the
connection means losing every flight: `lost` is set, and the process starts over.
"""

from __future__ import annotations

import asyncio
from datetime import datetime

import msgspec
import psycopg
from msgspec import Struct
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from undivided.domain.errors import Unavailable, Undivided
from undivided.store.database import TENANT, Connection
from undivided.store.exchange import Call, HotConnection, Statement, exchange

_TRY = Statement(
    b"undivided_try_lock",
    b"SELECT pg_try_advisory_lock(hashtextextended($1::text || '/' || $2::text, 0))",
)
_UNLOCK = Statement(
    b"undivided_unlock",
    b"SELECT pg_advisory_unlock(hashtextextended($1::text || '/' || $2::text, 0))",
)
_KEEPALIVE = (
    "keepalives=1 keepalives_idle=5 keepalives_interval=2 keepalives_count=3 tcp_user_timeout=10000"
)


class PoolerInTransactionMode(Undivided):
    """Session locks do not hold behind this address."""

    code = "pooler"


class Swept(Struct, frozen=True):
    """What one sweep found: agents to attend to, and turns of this worker that shall stop.

    `frozen` names the workers whose lock backends were ended because their lease was over.
    """

    now: datetime
    alive: bool
    frozen: tuple[str, ...]
    agents: tuple[str, ...]
    stops: tuple[str, ...]
    after: str = ""
    """Up to which agent it looked, if there were more than it looks at; the next goes on there."""


class _Question(Struct, eq=False):
    """A lock to be taken or let go, and whether it was."""

    call: Call
    answer: bool | None = None


class LockConnection:
    """The agents one process holds, and the connection that holds them.

    `worker_id` is fresh for every connection, so that no owner is ever mistaken for another.
    """

    def __init__(self, connection: HotConnection, worker_id: str, pid: int) -> None:
        self._connection = connection
        self._busy = asyncio.Lock()
        self._waiting: list[_Question] = []
        self.worker_id, self.pid = worker_id, pid
        self.held: set[str] = set()
        self._swept_to = ""
        self.lost = asyncio.Event()

    @classmethod
    async def open(cls, url: str, worker_id: str, lease_s: float) -> LockConnection:
        """Connect past any pooler and register the worker's lease.

        Raises:
            Unavailable: Postgres cannot be reached.
        """
        try:
            connection = await HotConnection.connect(
                make_conninfo(
                    url,
                    application_name=f"undivided-lock {worker_id}",
                    connect_timeout=5,
                    **conninfo_to_dict(_KEEPALIVE),
                ),
                autocommit=True,
            )
        except psycopg.OperationalError as error:
            raise Unavailable("the lock connection cannot reach the database") from error
        try:
            cursor = await connection.execute(
                "INSERT INTO workers (id, lock_pid, lease_until) VALUES"
                " (%s, pg_backend_pid(), clock_timestamp() + make_interval(secs => %s))"
                " RETURNING lock_pid",
                (worker_id, lease_s),
            )
            (pid,) = await cursor.fetchone() or (0,)
        except psycopg.OperationalError as error:
            await connection.close()
            raise Unavailable("the lock connection was lost at once") from error
        except psycopg.Error:
            await connection.close()
            raise
        return cls(connection, worker_id, pid)

    async def try_acquire(self, agent_id: str) -> bool:
        """Take an agent if nobody holds it, in this process or elsewhere."""
        if agent_id in self.held or self.lost.is_set():
            return False
        self.held.add(agent_id)
        taken = False
        try:
            taken = await self._ask(_TRY, agent_id)
        finally:
            if not taken:
                self.held.discard(agent_id)
        return taken

    async def release(self, agent_id: str) -> None:
        """Let go of an agent; if Postgres denies that it was held, every flight is given up."""
        try:
            if not self.lost.is_set() and not await self._ask(_UNLOCK, agent_id):
                self.lose()  # it was not held here: none of what this process believes is true
        finally:
            self.held.discard(agent_id)

    async def sweep(self, lease_s: float, limit: int) -> Swept:
        """Renew the lease of all flights together, and find who is looked after by nobody.

        On this connection, so that its death is noticed within one sweep. A worker whose lease
        is gone has lost its authority: it gives up every flight.
        """
        statement = "SELECT sweep(%s, %s, %s, %s)::text"
        try:
            async with self._busy:
                cursor = await self._connection.execute(
                    statement, (self.worker_id, lease_s, limit, self._swept_to)
                )
                row = await cursor.fetchone()
        except psycopg.Error as error:
            self.lose()
            raise Unavailable("the lock connection is gone, and every flight with it") from error
        told = msgspec.json.decode(row[0] if row else "{}", type=Swept)
        self._swept_to = told.after
        if not told.alive:
            self.lose()
        return told

    async def close(self) -> None:
        """Let go of everything and end the lease."""
        try:
            async with self._busy:
                await self._connection.execute(
                    "DELETE FROM workers WHERE id = %s", (self.worker_id,)
                )
        except psycopg.Error:
            pass  # the backend is gone, and the lease ends by itself
        self.lose()
        await self._connection.close()

    def lose(self) -> None:
        """Give up every flight: the connection or the lease is gone."""
        self.lost.set()

    async def _ask(self, statement: Statement, agent_id: str) -> bool:
        """Ask about one agent, in the same message as whatever else waits to be asked."""
        question = _Question(Call(statement, (TENANT.encode(), agent_id.encode())))
        self._waiting.append(question)
        try:
            async with self._busy:
                if question.answer is None:  # else whoever was here before has asked for us
                    await self._ask_all()
        except asyncio.CancelledError:
            if question in self._waiting:
                self._waiting.remove(question)
            else:
                self.lose()  # it may have been answered, and nobody would know what is held
            raise
        except psycopg.Error as error:
            self.lose()
            raise Unavailable("the lock connection is gone, and every flight with it") from error
        return question.answer is True

    async def _ask_all(self) -> None:
        questions, self._waiting = self._waiting, []
        results = await exchange(self._connection, *(one.call for one in questions))
        for one, result in zip(questions, results, strict=True):
            one.answer = result.get_value(0, 0) == b"t"


async def refuse_transaction_pooler(url: str) -> None:
    """Make sure that a connection to `url` keeps its backend.

    Two clients are connected at once; if Postgres sees both on one backend, a pooler lends it
    out per transaction.

    Raises:
        PoolerInTransactionMode: with one sentence on what to do.
        Unavailable: Postgres cannot be reached.
    """
    try:
        first = await psycopg.AsyncConnection.connect(url, autocommit=True, connect_timeout=5)
        async with first:
            before = await _backend(first)
            second = await psycopg.AsyncConnection.connect(url, autocommit=True, connect_timeout=5)
            async with second:
                await second.execute("BEGIN")
                between = await _backend(second)
                after = await _backend(first)
                await second.execute("ROLLBACK")
    except psycopg.OperationalError as error:
        raise Unavailable("the database cannot be reached") from error
    if between in (before, after) or before != after:
        raise PoolerInTransactionMode(
            "the database address goes through a pooler in transaction mode, where session locks "
            "do not hold; set DATABASE_DIRECT_URL to the database itself"
        )


async def _backend(connection: Connection) -> int:
    cursor = await connection.execute("SELECT pg_backend_pid()", prepare=False)
    row = await cursor.fetchone()
    return int(row[0]) if row else 0
