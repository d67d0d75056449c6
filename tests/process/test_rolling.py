"""Workers come and go while there is work: nothing is lost and nothing is done twice."""

from __future__ import annotations

import signal

import pytest

from tests.process.crew import Crew, call
from undivided.domain.events.items import ItemCompleted, ItemPicked
from undivided.domain.events.sessions import ModelResponded, TurnResumed, TurnSuspended

pytestmark = pytest.mark.process


async def test_a_rolling_restart(crew: Crew) -> None:
    """C26: on one host, so that all names are alike but for what is made anew each time."""
    agents, each = 6, 12
    for number in range(agents):
        await crew.agent(f"a{number}", {"reply": "so", "delay": 0.05})
    crew.hire(sweep_s=1)
    items = [
        item
        for number in range(agents)
        for item in await crew.send(f"a{number}", *(f"{n}" for n in range(each)))
    ]
    for generation in range(1, 3):
        await crew.recorded(ItemCompleted, generation * 12)
        (leaver,) = crew.stack.pids("worker")
        crew.hire(sweep_s=1)
        await crew.at_work(2)
        crew.kill(leaver, signal.SIGTERM)
        assert await crew.left(leaver) == 0
    await crew.over(*items)
    assert len(await crew.events(ItemCompleted)) == len(items)
    assert len(await crew.events(ItemPicked)) == len(items)
    assert len(await crew.events(ModelResponded)) == len(items)
    assert {one.cause for one in await crew.events(TurnResumed)} <= {"yielded"}


async def test_nobody_is_there_when_a_wait_is_over(crew: Crew) -> None:
    """C74, C83: whoever is hired next finds the timer, and goes on from there."""
    rest = call("sleep", seconds=0.5)
    await crew.agent("ada", {"step": 0, "calls": [rest]}, {"step": 1, "reply": "rested"})
    crew.hire()
    (item,) = await crew.send("ada", "rest")
    await crew.recorded(TurnSuspended)
    crew.kill(crew.stack.pids("worker")[0])
    crew.hire()
    await crew.over(item)
    assert [one.step for one in await crew.events(ModelResponded)] == [0, 1]
    assert [one.cause for one in await crew.events(TurnResumed)] == ["waited"]
