"""Worker processes on one database that can be hired, watched and killed.

Stimuli are accepted in the test's own process, by the product's own transactions; all that is
done about them is done by real child processes. Nothing here waits but for what it sees.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import psycopg

from tests.support.stack import Stack
from undivided.domain.agents import CreateAgent
from undivided.domain.events.catalogue import Event
from undivided.domain.events.items import Payload, Sender
from undivided.domain.mailbox import Accept
from undivided.domain.policy import DEFAULT_POLICY
from undivided.domain.recorded import Meta
from undivided.domain.state.agent import AgentRow
from undivided.domain.state.item import ItemRow
from undivided.store.checking import check
from undivided.store.codec import blob_references, decode_event, row_decoder
from undivided.store.commands import agents
from undivided.store.commands.accepting import accept_stimuli
from undivided.store.commands.outlet import Outlet
from undivided.store.database import Database
from undivided.store.doorbell import Doorbell
from undivided.store.fresh import fresh_id
from undivided.store.hints import Hints
from undivided.store.log import Log
from undivided.store.settings import Settings
from undivided.store.steps import load_blobs

BY = Meta(actor="test")
WITHIN_S = 20.0
_agent_of, _item_of = row_decoder(AgentRow), row_decoder(ItemRow)

Rule = dict[str, Any]


def call(tool: str, **args: Any) -> dict[str, Any]:
    """A tool call as a script says it."""
    return {"tool": tool, "args": args}


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keep `test_append` from writing its line: it waits for the lock on its file."""
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def lines(path: Path) -> int:
    """How often `test_append` has really run."""
    return path.read_text("utf-8").count("\n")


class Crew:
    """The workers of one test, the agents they work for, and what they have recorded."""

    def __init__(self, settings: Settings, folder: Path, database: Database) -> None:
        self.settings, self.folder = settings, folder
        self.database = database
        self.stack = Stack(settings, folder)
        self.outlet = Outlet(
            Log(database),
            Doorbell(settings.redis_url, settings.namespace),
            Hints(settings.redis_url, settings.namespace),
        )
        self._config = folder / "undivided.toml"

    def hire(self, lease_s: float = 30, sweep_s: float = 0.2) -> int:
        """Start a worker process; answers its id."""
        self._config.write_text(f"[workers]\nlease_s = {lease_s}\nsweep_s = {sweep_s}\n", "utf-8")
        return self.stack.start("worker", UNDIVIDED_CONFIG=str(self._config))

    def kill(self, pid: int, sign: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal to a worker."""
        self.stack.kill(pid, sign)

    async def agent(self, agent_id: str, *rules: Rule, **policy: Any) -> None:
        """An agent whose model answers by `rules`."""
        script = self.folder / f"{agent_id}.json"
        script.write_text(json.dumps({"rules": list(rules)}), "utf-8")
        command = CreateAgent(
            agent_id=agent_id, name=agent_id, model=f"script:{script}", policy=policy
        )
        await agents.create(self.outlet, DEFAULT_POLICY, command, BY)

    async def send(
        self, agent_id: str, *contents: str, kind: str = "human_chat", **fields: Any
    ) -> list[str]:
        """Put stimuli into a mailbox, ringing as the service does; answers the items' ids."""
        commands = [
            Accept(item_id=fresh_id("mbx"), source_type=kind, payload=Payload(content),
                   sender=Sender("ada", "Ada", "user"), **fields)
            for content in contents
        ]  # fmt: skip
        await accept_stimuli(self.outlet, agent_id, commands, BY)
        return [command.item_id for command in commands]

    async def events(self, kind: type[Event]) -> list[Any]:
        """Every recorded event of a type, in order."""
        async with self.database.connection() as connection:
            cursor = await connection.execute(
                "SELECT type, schema, data::text FROM events ORDER BY txid, position"
            )
            rows = await cursor.fetchall()
            names = {name for row in rows for name in blob_references(row[2])}
            blobs = await load_blobs(connection, names) if names else {}
        found = (decode_event(row[0], row[1], row[2], blobs) for row in rows)
        return [event for event in found if isinstance(event, kind)]

    async def row(self, agent_id: str) -> AgentRow:
        """The agent's row."""
        return _agent_of(await self._one("agents", agent_id))

    async def item(self, item_id: str) -> ItemRow:
        """The item's row."""
        return _item_of(await self._one("items", item_id))

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
            raise AssertionError(f"it never came to be\n{self.stack.said('worker')}") from None

    async def recorded(
        self, kind: type[Event], count: int = 1, within_s: float = WITHIN_S
    ) -> list[Any]:
        """Wait until `count` events of a type are recorded; answers those there are."""
        found: list[Any] = []

        async def enough() -> bool:
            found[:] = await self.events(kind)
            return len(found) >= count

        await self.until(enough, within_s)
        return found

    async def over(self, *item_ids: str, within_s: float = WITHIN_S) -> None:
        """Wait until items have come to an end."""

        async def ended() -> bool:
            states = [await self.status(item_id) for item_id in item_ids]
            return all(s in ("completed", "cancelled", "dead_letter") for s in states)

        await self.until(ended, within_s)

    async def at_rest(self, agent_id: str) -> None:
        """Wait until nothing is in an agent's focus."""

        async def idle() -> bool:
            async with self.database.connection() as connection:
                cursor = await connection.execute(
                    "SELECT attention_state = 'idle' FROM agents WHERE id = %s", (agent_id,)
                )
                return await cursor.fetchone() == (True,)

        await self.until(idle)

    async def at_work(self, count: int) -> None:
        """Wait until so many workers hold a lease, no more and no less."""

        async def so() -> bool:
            async with self.database.connection() as connection:
                cursor = await connection.execute("SELECT count(*) FROM workers")
                return await cursor.fetchone() == (count,)

        await self.until(so)

    async def leaving(self) -> None:
        """Wait until a worker has said that it is leaving."""

        async def so() -> bool:
            return "leaving" in self.stack.said("worker")

        await self.until(so)

    async def left(self, pid: int, within_s: float = WITHIN_S) -> int:
        """Wait until a worker has ended; answers its exit code."""
        return await asyncio.wait_for(self.stack.ended(pid), within_s)

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

    async def sound(self) -> None:
        """The invariants hold over all that was recorded, and every row is as the log says."""
        checked = await check(self.settings.database_direct_url)
        assert [wrong.finding for wrong in checked.wrong] == []

    async def _one(self, table: str, row_id: str) -> str:
        async with self.database.connection() as connection:
            statement = {
                "agents": "SELECT to_jsonb(t)::text FROM agents t WHERE id = %s",
                "items": "SELECT to_jsonb(t)::text FROM items t WHERE id = %s",
            }[table]
            cursor = await connection.execute(statement, (row_id,))
            row = await cursor.fetchone()
        assert row is not None, f"no {row_id} in {table}"
        return str(row[0])


@asynccontextmanager
async def crew_on(settings: Settings, folder: Path) -> AsyncIterator[Crew]:
    """A crew without workers yet; whoever is left is killed, and the log then is checked."""
    database = Database(settings.database_url, 4)
    crew = Crew(settings, folder, database)
    await database.open()
    await crew.outlet.doorbell.start()
    await crew.outlet.hints.start()
    try:
        yield crew
        await crew.sound()
    finally:
        for pid in crew.stack.pids("worker"):
            crew.kill(pid, signal.SIGKILL)
        await crew.outlet.hints.close()
        await crew.outlet.doorbell.close()
        await database.close()
