"""A worker is asked to leave: it stops at the next yield point, and nothing is run again."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

from tests.process.crew import Crew, call, lines, locked
from undivided.domain.events.flights import FlightAcquired, FlightReleased
from undivided.domain.events.sessions import (
    ModelResponded,
    ToolCallFinished,
    ToolCallStarted,
    TurnEnded,
    TurnResumed,
    TurnYielded,
)
from undivided.domain.outcomes import Completed

pytestmark = pytest.mark.process


async def test_in_a_tool(crew: Crew, tmp_path: Path) -> None:
    """The tool ends, its result is recorded, the turn yields; another worker asks the model on."""
    append = call("test_append", path=str(tmp_path / "once"), line="done", effect="once")
    await crew.agent("ada", {"step": 0, "calls": [append]}, {"step": 1, "reply": "so"})
    leaver = crew.hire()
    with locked(tmp_path / "once"):
        (item,) = await crew.send("ada", "go")
        await crew.recorded(ToolCallStarted)
        crew.hire()
        await crew.at_work(2)
        crew.kill(leaver, signal.SIGTERM)
        await crew.leaving()
    assert await crew.left(leaver) == 0
    await crew.over(item)
    assert lines(tmp_path / "once") == 1
    assert [one.step for one in await crew.events(ModelResponded)] == [0, 1]
    assert len(await crew.events(ToolCallStarted)) == 1
    (result,) = await crew.events(ToolCallFinished)
    assert result.resolution == "returned"
    assert len(await crew.events(TurnYielded)) == 1
    (resumed,) = await crew.events(TurnResumed)
    assert resumed.cause == "yielded"
    assert [one.taken_from for one in await crew.events(FlightAcquired)] == [None, None]
    assert [one.reason for one in await crew.events(FlightReleased)] == ["yielded", "done"]


async def test_in_a_model_call_that_answers(crew: Crew) -> None:
    """The answer is waited for and recorded: nobody pays for it twice."""
    await crew.agent("ada", {"reply": "so", "delay": 1})
    leaver = crew.hire()
    (item,) = await crew.send("ada", "go")
    await crew.recorded(FlightAcquired)
    crew.kill(leaver, signal.SIGTERM)
    assert await crew.left(leaver) == 0
    assert await crew.status(item) == "completed"
    (ended,) = await crew.events(TurnEnded)
    assert ended.outcome == Completed("so")


async def test_in_a_model_call_without_an_end(crew: Crew) -> None:
    """A second SIGTERM breaks it off; the turn yields and is at work elsewhere at once."""
    await crew.agent("ada", {"reply": "so", "delay": 600})
    leaver = crew.hire()
    await crew.send("ada", "go")
    await crew.recorded(FlightAcquired)
    crew.kill(leaver, signal.SIGTERM)
    crew.hire()
    await crew.at_work(2)
    crew.kill(leaver, signal.SIGTERM)
    assert await crew.left(leaver) == 0
    (resumed,) = await crew.recorded(TurnResumed)
    assert (resumed.cause, resumed.epoch) == ("yielded", 2)
    assert await crew.pilot("ada") != leaver
    assert await crew.events(ModelResponded) == []


async def test_of_an_idle_worker(crew: Crew) -> None:
    """It leaves at once, and its lease ends with it."""
    leaver = crew.hire()
    await crew.at_work(1)
    async with asyncio.timeout(5):
        crew.kill(leaver, signal.SIGTERM)
        assert await crew.left(leaver) == 0
    await crew.at_work(0)
