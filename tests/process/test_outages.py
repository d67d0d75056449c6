"""A server dies under living workers: they wait for it, and go on where they were."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
import pytest_asyncio

from tests.process.apart import Apart, servers_apart
from tests.process.crew import Crew, call, crew_on, lines, locked
from undivided.domain.errors import Unavailable
from undivided.domain.events.sessions import (
    ModelResponded,
    ToolCallFinished,
    ToolCallStarted,
    TurnEnded,
    TurnResumed,
)
from undivided.domain.outcomes import Completed

pytestmark = [pytest.mark.process, pytest.mark.asyncio(loop_scope="module")]

EFFECTS = ("pure", "idempotent", "once")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def apart(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Apart]:
    async with servers_apart(tmp_path_factory.mktemp("apart")) as started:
        yield started


@pytest_asyncio.fixture(loop_scope="module")
async def crew(apart: Apart, tmp_path: Path) -> AsyncIterator[Crew]:
    """A crew on servers that can be killed."""
    async with crew_on(await apart.settings(), tmp_path) as one:
        try:
            yield one
        finally:
            for pid in one.stack.pids("api"):
                one.kill(pid)


async def answers(crew: Crew) -> bool:
    """Whether the test's own connections have found Postgres again."""
    try:
        async with crew.database.connection() as connection:
            await connection.execute("SELECT 1")
    except Unavailable:
        return False
    return True


class TestPostgres:
    """What was recorded is there again; what was under way belongs to nobody any more."""

    async def test_it_is_killed_in_the_middle_of_turns(
        self, crew: Crew, apart: Apart, tmp_path: Path
    ) -> None:
        """C57: the same worker takes every turn anew, and asks for nothing that it was told."""
        for effect in EFFECTS:
            append = call("test_append", path=str(tmp_path / effect), line="x", effect=effect)
            await crew.agent(effect, {"step": 0, "calls": [append]}, {"step": 1, "reply": "so"})
        looked = call("test_append", path=str(tmp_path / "looked"), line="x")
        await crew.agent("thinks", {"step": 0, "calls": [looked]}, {"step": 1, "delay": 3600})
        worker = crew.hire()
        with ExitStack() as held:
            for effect in EFFECTS:
                held.enter_context(locked(tmp_path / effect))
            items = [(await crew.send(name, "go"))[0] for name in (*EFFECTS, "thinks")]
            await crew.recorded(ToolCallStarted, 4)
            await crew.recorded(ToolCallFinished)
            await apart.kill_postgres()
            crew.says("thinks", {"step": 1, "reply": "so"})
            await apart.start_postgres()
            await crew.until(lambda: answers(crew))
            await crew.recorded(TurnResumed, 4)
        await crew.over(*items)
        assert crew.stack.pids("worker") == [worker]
        await self.told_once(crew)
        assert [lines(tmp_path / name) for name in ("idempotent", "once", "looked")] == [1, 1, 1]

    async def told_once(self, crew: Crew) -> None:
        """Each request and each call has one answer; only what may not run again is in doubt."""
        for name in (*EFFECTS, "thinks"):
            assert [one.step for one in await crew.events(ModelResponded, name)] == [0, 1]
            (result,) = await crew.events(ToolCallFinished, name)
            assert result.resolution == ("interrupted" if name == "once" else "returned")
            (resumed,) = await crew.events(TurnResumed, name)
            assert (resumed.cause, resumed.epoch) == ("orphaned", 2)
            (ended,) = await crew.events(TurnEnded, name)
            assert ended.outcome == Completed("so")


class TestValkey:
    """It carries hints: without it work is later, and nothing is lost."""

    async def test_it_is_killed_and_comes_back(self, crew: Crew, apart: Apart) -> None:
        """C84: 202 without it, and the sweep finds the work; back again, everybody listens."""
        await crew.agent("ada", {"reply": "so"})
        crew.stack.start("api")
        await crew.stack.ready()
        sweeper = crew.hire()
        await crew.at_work(1)
        await apart.kill_valkey()
        await crew.over(await self.accepted(crew))
        crew.kill(sweeper)
        crew.hire(sweep_s=3600)
        await crew.at_work(1)
        await apart.start_valkey()
        await crew.until(lambda: self.heard(crew, apart))
        (item,) = await crew.send("ada", "and now")
        await crew.over(item)

    async def heard(self, crew: Crew, apart: Apart) -> bool:
        """Whether a worker listens, and the test itself can ring."""
        return await apart.listeners() == 1 and crew.outlet.doorbell.healthy

    async def accepted(self, crew: Crew) -> str:
        """What the service says to somebody who writes."""
        body = {"sourceType": "human_chat", "payload": {"content": "hello"}}
        async with httpx.AsyncClient(base_url=crew.stack.url, timeout=5) as client:
            answer = await client.post("/api/agents/ada/mailbox", json=body)
        assert answer.status_code == 202
        return str(answer.json()["itemId"])
