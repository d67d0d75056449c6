"""Worker processes on one database that can be hired, watched and killed.

Stimuli are accepted in the test's own process, by the product's own transactions; all that is
done about them is done by real child processes. Nothing here waits but for what it sees.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from tests.process.seen import WITHIN_S, Seen
from tests.support.stack import Stack
from undivided.domain.agents import CreateAgent
from undivided.domain.events.items import Payload, Sender
from undivided.domain.mailbox import Accept
from undivided.domain.policy import DEFAULT_POLICY
from undivided.domain.recorded import Meta
from undivided.store.checking import check
from undivided.store.commands import agents
from undivided.store.commands.accepting import accept_stimuli
from undivided.store.commands.outlet import Outlet
from undivided.store.database import Database
from undivided.store.doorbell import Doorbell
from undivided.store.fresh import fresh_id
from undivided.store.hints import Hints
from undivided.store.log import Log
from undivided.store.settings import Settings

BY = Meta(actor="test")

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


class Crew(Seen):
    """The workers of one test, the agents they work for, and what they have recorded."""

    def __init__(self, settings: Settings, folder: Path, database: Database) -> None:
        self.settings, self.folder = settings, folder
        self.stack = Stack(settings, folder)
        super().__init__(database, lambda: self.stack.said("worker"))
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
        script = self.says(agent_id, *rules)
        command = CreateAgent(
            agent_id=agent_id, name=agent_id, model=f"script:{script}", policy=policy
        )
        await agents.create(self.outlet, DEFAULT_POLICY, command, BY)

    def says(self, agent_id: str, *rules: Rule) -> Path:
        """From now on an agent's model answers by `rules`."""
        script = self.folder / f"{agent_id}.json"
        script.write_text(json.dumps({"rules": list(rules)}), "utf-8")
        return script

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

    async def leaving(self) -> None:
        """Wait until a worker has said that it is leaving."""

        async def so() -> bool:
            return "leaving" in self.stack.said("worker")

        await self.until(so)

    async def left(self, pid: int, within_s: float = WITHIN_S) -> int:
        """Wait until a worker has ended; answers its exit code."""
        return await asyncio.wait_for(self.stack.ended(pid), within_s)

    async def sound(self) -> None:
        """The invariants hold over all that was recorded, and every row is as the log says."""
        checked = await check(self.settings.database_direct_url)
        assert [wrong.finding for wrong in checked.wrong] == []


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
