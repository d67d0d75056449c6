"""Sending to Redis what may be lost.

Everything that goes through Redis is a hint: the truth is in Postgres and a sweep finds whatever a
hint failed to announce. So a sender never makes its caller wait and never fails. What is offered
during one round trip leaves together in the next one, the same thing offered twice leaves once,
and when Redis does not answer, what waits is dropped and counted. From then on offers are dropped
at once, and a probe finds out within half a second that Redis is back.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable
from contextlib import suppress
from itertools import islice
from typing import Any, Generic, TypeVar

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

T = TypeVar("T", bound=Hashable)

ANSWER_WITHIN_S = 0.5
PROBE_FIRST_S, PROBE_LONGEST_S = 0.05, 0.5
BATCH = 500
ROOM = 20_000

log = logging.getLogger(__name__)


def impatient_redis(redis_url: str) -> Redis:
    """A Redis client that gives up after half a second and retries once, on a fresh connection."""
    return Redis.from_url(
        redis_url,
        socket_timeout=ANSWER_WITHIN_S,
        socket_connect_timeout=ANSWER_WITHIN_S,
        retry=Retry(NoBackoff(), 1),
    )


class BestEffort(Generic[T]):
    """Delivers what it is offered in batches, or drops it when Redis does not take it.

    `deliver` sends one batch through `client`; `dropped` counts what never left. Only the event
    loop that called `start` may offer.
    """

    def __init__(self, client: Redis, deliver: Callable[[list[T]], Awaitable[Any]]) -> None:
        self.healthy = True
        self.dropped = 0
        self._client = client
        self._deliver = deliver
        self._waiting: dict[T, None] = {}
        self._offered = asyncio.Event()
        self._open = False
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to deliver; Redis need not be there."""
        self._open = True
        self._task = asyncio.create_task(self._deliver_until_closed())

    async def close(self) -> None:
        """Deliver what waits, for a second at most, and let go of Redis."""
        self._open = False
        self._offered.set()
        if self._task is not None:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._task, 2 * ANSWER_WITHIN_S)
            self._task = None
        self._drop_waiting()
        await self._client.aclose()

    def offer(self, what: T) -> None:
        """Take note of one thing to send; never waits, never raises."""
        if not (self._open and self.healthy) or len(self._waiting) >= ROOM:
            self.dropped += what not in self._waiting
            return
        self._waiting[what] = None
        self._offered.set()

    async def _deliver_until_closed(self) -> None:
        while self._open or self._waiting:
            await self._offered.wait()
            self._offered.clear()
            while self._waiting:
                await self._deliver_some()

    async def _deliver_some(self) -> None:
        batch = list(islice(self._waiting, BATCH))
        for what in batch:
            del self._waiting[what]
        try:
            await self._deliver(batch)
        except (RedisError, OSError) as lost:
            self.dropped += len(batch)
            await self._wait_for_redis(lost)
        except Exception:
            self.dropped += len(batch)
            log.exception("hints dropped: they cannot be sent")

    async def _wait_for_redis(self, lost: Exception) -> None:
        self.healthy = False
        self._drop_waiting()
        log.warning("redis lost, hints are dropped until it is back: %s", lost)
        pause = PROBE_FIRST_S
        while self._open and not await self._answers():
            await asyncio.sleep(pause)
            pause = min(2 * pause, PROBE_LONGEST_S)
        self.healthy = True
        log.warning("redis is back; %d hints were dropped so far", self.dropped)

    async def _answers(self) -> bool:
        with suppress(RedisError, OSError):
            return bool(await self._client.echo("here"))
        return False

    def _drop_waiting(self) -> None:
        self.dropped += len(self._waiting)
        self._waiting.clear()
