"""What a staged race needs: somebody who stands in the way, and sight of those who wait."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import psycopg

from undivided.domain.events.catalogue import Event
from undivided.store.codec import decode_event

T = TypeVar("T")
PATIENCE_S = 10.0


class Stage:
    """One database of which the test sees everything, and on which it can hold locks."""

    def __init__(self, owner_url: str) -> None:
        self._owner_url = owner_url

    @asynccontextmanager
    async def holding(self, *streams: str) -> AsyncIterator[None]:
        """Hold the row locks of streams, so that whoever wants one of them waits."""
        async with await psycopg.AsyncConnection.connect(self._owner_url) as connection:
            await connection.execute(
                "SELECT 1 FROM streams WHERE stream = ANY(%s) FOR UPDATE", (list(streams),)
            )
            yield
            await connection.rollback()

    async def begin_waiting(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Start `work` and return once one more backend waits for a lock than before."""
        before = await self.waiting()
        task = asyncio.create_task(work)
        async with asyncio.timeout(PATIENCE_S):
            while await self.waiting() <= before:
                assert not task.done(), "it did not have to wait"
                await asyncio.sleep(0.005)
        return task

    async def ask(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        """Ask Postgres something, as the owner."""
        async with await psycopg.AsyncConnection.connect(
            self._owner_url, autocommit=True
        ) as connection:
            cursor = await connection.execute(statement.encode(), parameters)
            return await cursor.fetchall() if cursor.description else []

    async def events(self, kind: type[Event]) -> list[Any]:
        """Every recorded event of a type, in the order of the log."""
        rows = await self.ask("SELECT type, schema, data::text FROM events ORDER BY txid, position")
        found = (decode_event(name, schema, data, {}) for name, schema, data in rows)
        return [event for event in found if isinstance(event, kind)]

    async def more_wait(self, before: int) -> None:
        """Wait until more backends wait for a lock than `before`."""
        async with asyncio.timeout(PATIENCE_S):
            while await self.waiting() <= before:
                await asyncio.sleep(0.005)

    async def until_free(self) -> None:
        """Wait until nobody holds an agent."""
        async with asyncio.timeout(PATIENCE_S):
            while await self.ask("SELECT 1 FROM pg_locks WHERE locktype = 'advisory'"):
                await asyncio.sleep(0.005)

    async def waiting(self) -> int:
        """How many backends wait for a lock."""
        ((count,),) = await self.ask(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        return int(count)
