"""A worker in the test's own process, whose model answers when the test lets it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager

from undivided.domain.dialogue import ModelReply, ModelRequest, ToolCall, Usage, UserSaid
from undivided.domain.errors import ModelFailed
from undivided.domain.scenarios import JUDGE
from undivided.domain.script import completed
from undivided.store.commands.outlet import Outlet
from undivided.store.config import default_config
from undivided.store.database import Database
from undivided.store.doorbell import Doorbell
from undivided.store.fresh import fresh_id
from undivided.store.hints import Hints
from undivided.store.locks import LockConnection
from undivided.store.log import Log
from undivided.store.settings import Settings
from undivided.workers.attend import Attendant
from undivided.workers.drive import Driver
from undivided.workers.model import Models
from undivided.workers.tools.messages import messaging
from undivided.workers.tools.registry import Tools
from undivided.workers.tools.time import BACKGROUND_EXEC


class Model(Models):
    """A model that remembers what it was asked, and answers once its gate is open.

    `calls`: the tool calls of its next responses, one list each; then it only says "so". So many
    of its next responses as `unmarked` says lack the completion marker. Requests of a `failing`
    scenario are refused.
    """

    def __init__(self) -> None:
        super().__init__(default_config(), _no_recordings)
        self.asked: list[ModelRequest] = []
        self.words: dict[str, str] = {}
        self.calls: list[list[tuple[str, dict[str, object]]]] = []
        self.unmarked = 0
        self.failing: set[str] = set()
        self.gate = asyncio.Event()
        self.gate.set()
        self.busy = asyncio.Event()

    async def complete(self, request: ModelRequest, on_delta: Callable[[str], None]) -> ModelReply:
        """Answer, once it may; a scenario that has a word of its own is not kept waiting."""
        if request.scenario in self.words or request.scenario == JUDGE:
            return ModelReply(self.words.get(request.scenario, ""), (), Usage(), "gated")
        self.asked.append(request)
        self.busy.set()
        if request.scenario in self.failing:
            raise ModelFailed("refused", "as told")
        on_delta("s")
        await self.gate.wait()
        wished = self.calls.pop(0) if self.calls else []
        calls = tuple(
            ToolCall(f"{request.turn_id}.{request.step}.{n}", tool, args)
            for n, (tool, args) in enumerate(wished)
        )
        self.unmarked, bare = max(0, self.unmarked - 1), self.unmarked > 0
        text = "" if calls else "so" if bare else completed("so", request)
        return ModelReply(text, calls, Usage(1, 1, 0, 1), "gated")

    def inputs(self) -> list[str]:
        """The newest input of each request."""
        return [request.newest_input for request in self.asked]

    def read(self) -> list[list[str]]:
        """What people had said, as each request showed it."""
        return [
            [one.content for one in request.history if isinstance(one, UserSaid)]
            for request in self.asked
        ]


class Bell(Doorbell):
    """A doorbell whose rings the test hears, and nobody else."""

    def __init__(self) -> None:
        super().__init__("redis://127.0.0.1:1", "nobody")
        self.rung: list[str] = []

    def ring(self, agent_ids: Iterable[str]) -> None:
        """Remember who was rung for."""
        self.rung.extend(agent_ids)


class Hand:
    """One worker: what holds its locks, what it is told, what it does."""

    def __init__(self, log: Log, locks: LockConnection, hints: Hints) -> None:
        self.log, self.locks, self.hints = log, locks, hints
        self.model, self.bell = Model(), Bell()
        self.outlet = Outlet(log, self.bell, hints)
        tools = Tools(test_tools=True, more=(*messaging(self.outlet), BACKGROUND_EXEC))
        driver = Driver(log, self.model, tools, hints)
        self.attendant = Attendant(log, locks, driver, self.bell)

    async def attend(self, agent_id: str) -> None:
        """Answer a ring."""
        await self.attendant.attend(agent_id)

    async def at_the_model(self, agent_id: str) -> asyncio.Task[None]:
        """Answer a ring, and come back once the model is asked; it answers when its gate opens."""
        self.model.gate.clear()
        self.model.busy.clear()
        at_work = asyncio.create_task(self.attend(agent_id))
        await self.model.busy.wait()
        return at_work

    async def sweep(self, lease_s: float = 30) -> tuple[str, ...]:
        """Look for what nobody looks after; answers the agents, without attending to them."""
        return (await self.locks.sweep(lease_s, 8)).agents


@asynccontextmanager
async def hired(
    settings: Settings, connections: int = 10, name: str | None = None, lease_s: float = 30
) -> AsyncIterator[Hand]:
    """A worker with a pool and a lock connection of its own."""
    database = Database(settings.database_url, connections, name or "undivided-hand")
    hints = Hints(settings.redis_url, settings.namespace)
    async with AsyncExitStack() as stack:
        await database.open()
        stack.push_async_callback(database.close)
        await hints.start()
        stack.push_async_callback(hints.close)
        worker_id = name or fresh_id("wrk")
        locks = await LockConnection.open(settings.database_direct_url, worker_id, lease_s)
        stack.push_async_callback(locks.close)
        yield Hand(Log(database), locks, hints)


async def _no_recordings(name: str) -> bytes:
    raise LookupError(name)
