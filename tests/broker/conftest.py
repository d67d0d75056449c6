"""A Valkey, a doorbell, and workers that note whom they attended to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.broker.valkey import Valkey
from undivided.store.doorbell import Doorbell
from undivided.store.hints import Hints
from undivided.workers.broker import Attendance

NAMESPACE = "test"
Attend = Callable[[str], Awaitable[None]]


class Worker:
    """A worker process in miniature: it attends on this loop and remembers to whom."""

    def __init__(self, redis_url: str, threads: int, then: Attend | None) -> None:
        self.attended: list[str] = []
        self.attendance = Attendance(redis_url, NAMESPACE)
        self._then = then
        self.attendance.start(asyncio.get_running_loop(), self._attend, threads)

    async def _attend(self, agent_id: str) -> None:
        self.attended.append(agent_id)
        if self._then is not None:
            await self._then(agent_id)


class Workers:
    """Starts workers and lets them finish when the test ends."""

    def __init__(self, redis_url: str, stack: AsyncExitStack) -> None:
        self._redis_url = redis_url
        self._stack = stack

    def __call__(self, threads: int = 2, then: Attend | None = None) -> Worker:
        worker = Worker(self._redis_url, threads, then)
        self._stack.push_async_callback(worker.attendance.finish, 10.0)
        return worker


@pytest.fixture
async def valkey(tmp_path: Path) -> AsyncIterator[Valkey]:
    server = Valkey(tmp_path)
    await server.start()
    yield server
    server.kill()


@pytest.fixture
async def workers(valkey: Valkey) -> AsyncIterator[Workers]:
    async with AsyncExitStack() as stack:
        yield Workers(valkey.url, stack)


@pytest.fixture
async def doorbell(valkey: Valkey) -> AsyncIterator[Doorbell]:
    bell = Doorbell(valkey.url, NAMESPACE)
    await bell.start()
    yield bell
    await bell.close()


@pytest.fixture
async def hints(valkey: Valkey) -> AsyncIterator[Hints]:
    one = Hints(valkey.url, NAMESPACE)
    await one.start()
    yield one
    await one.close()
