"""What a service has recorded: read from the database, and waited for with a deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import psycopg

from undivided.domain.events.catalogue import Event
from undivided.domain.state.item import ItemRow
from undivided.store.codec import blob_references, decode_event, row_decoder
from undivided.store.database import Database
from undivided.store.steps import load_blobs

WITHIN_S = 30.0
_item_of = row_decoder(ItemRow)


class Seen:
    """One database, watched. `said` answers what the processes wrote, for when it goes wrong."""

    def __init__(self, database: Database, said: Callable[[], str]) -> None:
        self.database, self.said = database, said

    async def events(self, kind: type[Event], agent: str | None = None) -> list[Any]:
        """Every recorded event of a type, in order; of one agent, if it is named."""
        async with self.database.connection() as connection:
            cursor = await connection.execute(
                "SELECT type, schema, data::text FROM events WHERE %(agent)s::text IS NULL"
                " OR stream = 'agent:' || %(agent)s OR stream IN"
                " (SELECT 'session:' || id FROM sessions WHERE agent_id = %(agent)s)"
                " ORDER BY txid, position",
                {"agent": agent},
            )
            rows = await cursor.fetchall()
            names = {name for row in rows for name in blob_references(row[2])}
            blobs = await load_blobs(connection, names) if names else {}
        found = (decode_event(row[0], row[1], row[2], blobs) for row in rows)
        return [event for event in found if isinstance(event, kind)]

    async def item(self, item_id: str) -> ItemRow:
        """The item's row."""
        async with self.database.connection() as connection:
            cursor = await connection.execute(
                "SELECT to_jsonb(t)::text FROM items t WHERE id = %s", (item_id,)
            )
            row = await cursor.fetchone()
        assert row is not None, f"there is no item {item_id}"
        return _item_of(str(row[0]))

    async def status(self, item_id: str) -> str:
        """Where in its life an item is."""
        phase = msgspec.to_builtins((await self.item(item_id)).phase)
        return str(phase["status"])

    async def pilot(self, agent_id: str) -> int:
        """The process that holds an agent, or held it last."""
        async with self.database.connection() as connection:
            cursor = await connection.execute(
                "SELECT worker FROM flights WHERE id = %s", (agent_id,)
            )
            row = await cursor.fetchone()
        assert row is not None
        return int(row[0].split(".")[1])

    async def until(
        self, condition: Callable[[], Awaitable[bool]], within_s: float = WITHIN_S
    ) -> None:
        """Wait until the database says so, with a deadline that means failure."""
        try:
            async with asyncio.timeout(within_s):
                while not await condition():
                    await asyncio.sleep(0.02)
        except TimeoutError:
            raise AssertionError(f"it never came to be\n{self.said()}") from None

    async def recorded(
        self, kind: type[Event], count: int = 1, agent: str | None = None
    ) -> list[Any]:
        """Wait until `count` events of a type are recorded; answers those there are."""
        found: list[Any] = []

        async def enough() -> bool:
            found[:] = await self.events(kind, agent)
            return len(found) >= count

        await self.until(enough)
        return found

    async def over(self, *item_ids: str, within_s: float = WITHIN_S) -> None:
        """Wait until items have come to an end."""

        async def ended() -> bool:
            states = [await self.status(item_id) for item_id in item_ids]
            return all(s in ("completed", "cancelled", "dead_letter") for s in states)

        await self.until(ended, within_s)

    async def attention(self, agent_id: str, state: str) -> None:
        """Wait until an agent is `idle`, `focused` or `suspended`."""

        async def so() -> bool:
            async with self.database.connection() as connection:
                cursor = await connection.execute(
                    "SELECT attention_state FROM agents WHERE id = %s", (agent_id,)
                )
                return await cursor.fetchone() == (state,)

        await self.until(so)

    async def at_work(self, count: int) -> None:
        """Wait until so many workers hold a lease, no more and no less."""

        async def so() -> bool:
            async with self.database.connection() as connection:
                cursor = await connection.execute("SELECT count(*) FROM workers")
                return await cursor.fetchone() == (count,)

        await self.until(so)

    async def blocked_by(self, blocker: psycopg.Connection[Any], count: int) -> None:
        """Wait until `count` other backends wait for what a connection holds."""

        async def so() -> bool:
            return len(await self._waiting_for(blocker)) >= count

        await self.until(so)

    async def ended_by_hand(self, blocker: psycopg.Connection[Any]) -> None:
        """End the backends that wait for a connection, as if their machine had died too."""
        for pid in await self._waiting_for(blocker):
            async with self.database.connection() as connection:
                await connection.execute("SELECT pg_terminate_backend(%s)", (pid,))

        async def gone() -> bool:
            return not await self._waiting_for(blocker)

        await self.until(gone)

    async def _waiting_for(self, blocker: psycopg.Connection[Any]) -> list[int]:
        async with self.database.connection() as connection:
            cursor = await connection.execute(
                "SELECT pid FROM pg_stat_activity WHERE %s = ANY(pg_blocking_pids(pid))",
                (blocker.info.backend_pid,),
            )
            return [pid for (pid,) in await cursor.fetchall()]
