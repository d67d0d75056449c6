"""Turns end although models and tools hang and workers die, and bystanders are left alone."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.process.crew import BY, Crew, call, lines, locked
from tests.process.test_waits import nobody_is_held
from undivided.domain.agents import ConfigureAgent
from undivided.domain.events.agents import AgentConfigured, MemoryNoted
from undivided.domain.events.items import (
    ItemDeadLettered,
    ItemPicked,
    ItemRequeued,
    NoticePosted,
    Payload,
)
from undivided.domain.events.sessions import (
    ModelResponded,
    ToolCallFinished,
    ToolCallStarted,
    TurnEnded,
    TurnResumed,
)
from undivided.domain.mailbox import Accept
from undivided.domain.outcomes import Completed, Failed, TimedOut
from undivided.store.commands import agents
from undivided.store.commands.accepting import accept_stimuli

pytestmark = pytest.mark.process
in_one_loop = pytest.mark.asyncio(loop_scope="module")

UNKIND = "a\x00b\ud800c\\u0000\ufffe"
"""What Postgres would refuse, and what looks like it and must not be changed."""


def threads_of(pid: int) -> int:
    """How many threads a process has."""
    return len(list(Path(f"/proc/{pid}/task").iterdir()))


async def deadline_has_passed(crew: Crew) -> bool:
    """Whether the time of every turn is over, by the clock that counts."""
    async with crew.database.connection() as connection:
        cursor = await connection.execute(
            "SELECT bool_and((phase->>'deadline')::timestamptz < clock_timestamp()) FROM turns"
        )
        return await cursor.fetchone() == (True,)


@in_one_loop
class TestWhatHangs:
    """More that never answers than a worker has threads."""

    async def test_models(self, at_work: Crew) -> None:
        """C79, C80: each turn ends in time; no lock is left behind, nor a thread for each."""
        (worker,) = at_work.stack.pids("worker")
        await at_work.agent("quick", {"reply": "so"})
        await at_work.over(*await at_work.send("quick", "before"))
        before = threads_of(worker)
        names = [f"h{number}" for number in range(20)]
        for name in names:
            await at_work.agent(name, {"delay": 3600}, processingTimeoutS=0.3, timeoutMaxRetries=0)
        items = [(await at_work.send(name, "hello"))[0] for name in names]
        await at_work.over(*items)
        await at_work.over(*await at_work.send("quick", "after"))
        for name in names:
            (ended,) = await at_work.events(TurnEnded, name)
            assert ended.outcome == TimedOut(0.3)
        await at_work.until(lambda: nobody_is_held(at_work))
        assert threads_of(worker) < before + len(names) // 2

    async def test_tools(self, at_work: Crew) -> None:
        """The call is stopped, the model is told, and the turn goes on."""
        nap = call("test_sleep", seconds=3600)
        await at_work.agent(
            "nap", {"step": 0, "calls": [nap]}, {"step": 1, "reply": "so"}, toolTimeoutS=0.2
        )
        await at_work.over(*await at_work.send("nap", "hello"))
        (result,) = await at_work.events(ToolCallFinished, "nap")
        assert (result.resolution, "did not end within" in result.content) == ("raised", True)
        (ended,) = await at_work.events(TurnEnded, "nap")
        assert ended.outcome == Completed("so")

    async def test_tools_that_block(self, at_work: Crew, tmp_path: Path) -> None:
        """C79: a system call cannot be broken off; its thread is lost, and no other."""
        stuck = call("test_append", path=str(tmp_path / "stuck"), line="x", effect="pure")
        names = [f"b{number}" for number in range(12)]
        with locked(tmp_path / "stuck"):
            for name in names:
                await at_work.agent(
                    name, {"step": 0, "calls": [stuck]}, {"step": 1, "reply": "so"},
                    toolTimeoutS=0.2,
                )  # fmt: skip
            await at_work.over(*[(await at_work.send(name, "go"))[0] for name in names])
            await at_work.agent("free", {"reply": "so"})
            await at_work.over(*await at_work.send("free", "hello"))
        for name in names:
            (ended,) = await at_work.events(TurnEnded, name)
            assert ended.outcome == Completed("so")


class TestWhoDies:
    """Time and attempts are counted in the log, and so by nobody who could die."""

    async def test_before_the_backstop(self, crew: Crew) -> None:
        """Whoever finds the turn ends it; the model is not asked again, nor is it given more."""
        await crew.agent("ada", {"delay": 3600}, processingTimeoutS=2, timeoutMaxRetries=0)
        worker = crew.hire()
        (item,) = await crew.send("ada", "hello")
        await crew.attention("ada", "focused")
        crew.kill(worker)
        await crew.until(lambda: deadline_has_passed(crew))
        crew.hire()
        await crew.over(item)
        assert len(await crew.events(TurnResumed)) == 1
        assert [one.outcome for one in await crew.events(TurnEnded)] == [TimedOut(2)]

    async def test_between_two_attempts(self, crew: Crew) -> None:
        """C83: the count goes on where it was, and there is one notice in the end."""
        await crew.agent(
            "ada", {"error": "server_error"}, retryBackoffS=[0.8], maxDeliveryAttempts=3
        )
        (item,) = await crew.send("ada", "hello")
        for attempt in range(1, 3):
            worker = crew.hire()
            await crew.recorded(ItemRequeued, attempt)
            crew.kill(worker)
        crew.hire()
        await crew.over(item)
        assert await crew.status(item) == "dead_letter"
        assert [one.attempt for one in await crew.events(ItemPicked)] == [1, 2, 3]
        assert [one.item_id for one in await crew.events(NoticePosted)] == [item]
        outcomes = [one.outcome for one in await crew.events(TurnEnded)]
        assert {(type(one), one.reason) for one in outcomes} == {(Failed, "server_error")}

    async def test_beside_a_tool_that_never_returns(self, crew: Crew, tmp_path: Path) -> None:
        """C79: a second SIGTERM is enough; the turn is at work elsewhere, and runs no tool twice.

        The stuck call may still take effect, for nobody can call it back: it is in doubt.
        """
        stuck = call("test_append", path=str(tmp_path / "once"), line="x", effect="once")
        await crew.agent("ada", {"step": 0, "calls": [stuck]}, {"step": 1, "reply": "so"})
        leaver = crew.hire()
        with locked(tmp_path / "once"):
            (item,) = await crew.send("ada", "go")
            await crew.recorded(ToolCallStarted)
            crew.kill(leaver, signal.SIGTERM)
            await crew.leaving()
            crew.kill(leaver, signal.SIGTERM)
            assert await crew.left(leaver) == 0
            crew.hire()
            await crew.over(item)
        (result,) = await crew.events(ToolCallFinished)
        assert result.resolution == "interrupted"
        assert len(await crew.events(ToolCallStarted)) == 1
        assert lines(tmp_path / "once") == 0

    async def test_beside_a_poison(self, crew: Crew, tmp_path: Path) -> None:
        """C77: a bystander loses its worker as often, and has its answer all the same."""
        deadly = call("test_append", path=str(tmp_path / "pure"), line="x", effect="pure")
        await crew.agent("bad", {"step": 0, "calls": [deadly]}, maxDeliveryAttempts=2)
        await crew.agent("ada", {"delay": 3600})
        (poison,) = await crew.send("bad", "poison")
        (harmless,) = await crew.send("ada", "hello")
        with locked(tmp_path / "pure"):
            worker = crew.hire()
            await crew.recorded(ToolCallStarted)
            await crew.attention("ada", "focused")
            crew.kill(worker)
            worker = crew.hire()
            for name in ("bad", "ada"):
                await crew.recorded(TurnResumed, agent=name)
            crew.kill(worker)
            crew.says("ada", {"reply": "so"})
            crew.hire()
            await crew.over(poison, harmless)
        assert lines(tmp_path / "pure") == 0
        assert [one.item_id for one in await crew.events(ItemDeadLettered)] == [poison]
        assert await crew.status(harmless) == "completed"
        (answered,) = await crew.events(ModelResponded, "ada")
        assert answered.text == "so"
        assert len(await crew.events(TurnResumed, "ada")) == 2


@in_one_loop
class TestWhatPostgresWouldRefuse:
    """It is kept as it is, wherever a person, a producer or a model may put it."""

    async def test_in_all_places(self, at_work: Crew) -> None:
        """C45, C46, C47: instructions, the producer's own fields, arguments, notes, errors."""
        note = call("update_working_memory", key="k", content=UNKIND)
        fail = call("test_fail", message=UNKIND)
        await at_work.agent("odd", {"step": 0, "calls": [note, fail]}, {"step": 1, "reply": UNKIND})
        told = ConfigureAgent(instructions=UNKIND)
        await agents.configure(at_work.outlet, "odd", told, BY)
        says = Payload(UNKIND, summary=UNKIND, extra={UNKIND: [UNKIND, {"deep": UNKIND}]})
        stimulus = Accept(item_id="odd1", source_type="human_chat", payload=says)
        await accept_stimuli(at_work.outlet, "odd", [stimulus], BY)
        await at_work.over("odd1")
        (configured,) = await at_work.events(AgentConfigured, "odd")
        assert configured.instructions == UNKIND
        assert (await at_work.item("odd1")).payload == says
        (noted,) = await at_work.events(MemoryNoted, "odd")
        assert noted.content == UNKIND
        assert [one.content for one in await at_work.events(ToolCallFinished, "odd")][1] == UNKIND
        (ended,) = await at_work.events(TurnEnded, "odd")
        assert ended.outcome == Completed(UNKIND)
