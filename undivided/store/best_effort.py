"""Sending to Redis what may be lost.

Everything that goes through Redis is a hint: the truth is in Postgres, and a sweep finds whatever
a hint failed to announce. So a sender never makes its caller wait and never fails. What is offered
during one round trip leaves together in the next, the same thing offered twice leaves once. When
Redis does not answer, what waits is dropped and counted, and so is every offer after it until a
new connection stands, which is tried at least twice a second.

It speaks through one bare connection and not through a client: on an idle machine the layers of a
client (pool, retries, metrics) cost as much again as the round trip.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from itertools import islice
from typing import Generic, TypeVar, cast

from redis.asyncio.connection import AbstractConnection, ConnectionPool
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as Disconnected
from redis.exceptions import RedisError

T = TypeVar("T", bound=Hashable)
Command = Sequence[str | bytes | int]

ANSWER_WITHIN_S = 0.5
PAUSE_S, LONGEST_PAUSE_S = 0.05, 0.5
BATCH = 500
ROOM = 20_000

log = logging.getLogger(__name__)


def bare_connection(redis_url: str) -> AbstractConnection:
    """One connection to Redis, not yet connected, that neither retries nor watches the clock."""
    pool = ConnectionPool.from_url(
        redis_url,
        protocol=2,
        socket_timeout=None,
        socket_connect_timeout=None,
        retry=Retry(NoBackoff(), 0),
    )
    return cast("AbstractConnection", pool.make_connection())  # type: ignore[no-untyped-call]


class BestEffort(Generic[T]):
    """Sends what it is offered in batches, or drops it when Redis does not take it.

    `commands` turns one batch into Redis commands; after one has left, the next gathers for
    `gather_s`. `healthy`: whether Redis answered last.
    `dropped`: how many offers never arrived. Only the loop that called `start` may offer.
    """

    def __init__(
        self,
        redis_url: str,
        commands: Callable[[list[T]], list[Command]],
        gather_s: float = 0,
    ) -> None:
        self.healthy = True
        self.dropped = 0
        self._commands, self._gather_s = commands, gather_s
        self._connection = bare_connection(redis_url)
        self._waiting: dict[T, None] = {}
        self._offered = asyncio.Event()
        self._open = False
        self._pause_s = PAUSE_S
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to send; Redis need not be there."""
        self._open = True
        self._task = asyncio.create_task(self._send_until_closed())

    async def close(self) -> None:
        """Send what waits, for a second at most, and hang up."""
        self._open = False
        self._offered.set()
        if self._task is not None:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._task, 2 * ANSWER_WITHIN_S)
            self._task = None
        self._drop_waiting()
        await self._connection.disconnect(nowait=True)

    def offer(self, what: T) -> None:
        """Take note of one thing to send; never waits, never raises."""
        if not (self._open and self.healthy) or len(self._waiting) >= ROOM:
            self.dropped += what not in self._waiting
            return
        self._waiting[what] = None
        self._offered.set()

    async def _send_until_closed(self) -> None:
        while self._open or self._waiting:
            if not self._connection.is_connected:
                await self._reconnect()
            await self._offered.wait()
            self._offered.clear()
            while self._waiting:
                await self._send_some()
                if self._gather_s and self._open:
                    await asyncio.sleep(self._gather_s)

    async def _send_some(self) -> None:
        batch = list(islice(self._waiting, BATCH))
        for what in batch:
            del self._waiting[what]
        try:
            await self._exchange(self._commands(batch))
            self._pause_s = PAUSE_S
        except (RedisError, OSError, TimeoutError) as lost:
            self.dropped += len(batch)
            self._despair(lost)
            await self._reconnect()
        except Exception:
            self.dropped += len(batch)
            log.exception("%d hints dropped: they cannot be put into words for redis", len(batch))

    async def _exchange(self, commands: list[Command]) -> None:
        try:
            await self._ask(commands)
        except Disconnected:  # most likely long ago, when nobody looked: redis was restarted
            await self._connection.disconnect(nowait=True)
            await self._ask(commands)

    async def _ask(self, commands: list[Command]) -> None:
        connection = self._connection
        async with asyncio.timeout(ANSWER_WITHIN_S):
            await connection.connect()  # type: ignore[no-untyped-call]
            await connection.send_packed_command(connection.pack_commands(commands))
            for _ in commands:
                await connection.read_response()

    def _despair(self, lost: Exception) -> None:
        if self.healthy:
            log.warning(
                "redis lost, hints are dropped until it is back: %s", str(lost) or "no answer"
            )
        self.healthy = False
        self._drop_waiting()

    async def _reconnect(self) -> None:
        while self._open:
            try:
                await self._connection.disconnect(nowait=True)
                async with asyncio.timeout(ANSWER_WITHIN_S):
                    await self._connection.connect()  # type: ignore[no-untyped-call]
                break
            except (RedisError, OSError, TimeoutError) as lost:
                self._despair(lost)
            await asyncio.sleep(self._pause_s)
            self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)
        if not self.healthy:
            log.warning("redis is back; %d hints were dropped so far", self.dropped)
        self.healthy = True

    def _drop_waiting(self) -> None:
        self.dropped += len(self._waiting)
        self._waiting.clear()
