"""A worker freezes: it holds its locks and its connections, and does nothing any more."""

from __future__ import annotations

import signal

import pytest

from tests.process.crew import Crew
from undivided.domain.events.flights import FlightAcquired, FlightFenced
from undivided.domain.events.sessions import ModelResponded, TurnEnded, TurnResumed
from undivided.domain.outcomes import Completed

pytestmark = pytest.mark.process


async def test_it_wakes_up_with_an_answer(crew: Crew) -> None:
    """C22: another worker finished the turn; the late flight is fenced, and that is recorded.

    Whether it still tries to write or gives up first is for chance to say; either is refused.
    The frozen one then starts over under a new name, and is as good as any.
    """
    await crew.agent("ada", {"reply": "so", "delay": 1})
    frozen = crew.hire(lease_s=0.6)
    (item,) = await crew.send("ada", "hello")
    await crew.attention("ada", "focused")
    crew.kill(frozen, signal.SIGSTOP)
    helper = crew.hire(lease_s=30)
    await crew.over(item)
    assert await crew.pilot("ada") == helper
    crew.kill(frozen, signal.SIGCONT)
    (fenced,) = await crew.recorded(FlightFenced)
    assert (fenced.epoch, fenced.current_epoch) == (1, 2)
    assert len(await crew.events(ModelResponded)) == 1
    assert len(await crew.events(TurnEnded)) == 1
    (resumed,) = await crew.events(TurnResumed)
    assert resumed.cause == "orphaned"
    crew.kill(helper)
    (again,) = await crew.send("ada", "and now")
    await crew.over(again)
    assert await crew.pilot("ada") == frozen


async def test_its_lease_was_cleaned_away(crew: Crew) -> None:
    """C27: no lease is as bad as one that is over, whatever became of the row."""
    await crew.agent("ada", {"reply": "so", "delay": 1})
    frozen = crew.hire()
    (item,) = await crew.send("ada", "hello")
    await crew.attention("ada", "focused")
    crew.kill(frozen, signal.SIGSTOP)
    async with crew.database.connection() as connection:
        await connection.execute("DELETE FROM workers")
    crew.hire()
    await crew.over(item)
    assert await crew.pilot("ada") != frozen


async def test_a_long_call_is_nobody_elses_business(crew: Crew) -> None:
    """C30, C76: a call that outlasts many leases stays where it is while they are renewed."""
    await crew.agent("ada", {"reply": "so", "delay": 2.5})
    crew.hire(lease_s=0.6, sweep_s=0.1)
    crew.hire(lease_s=0.6, sweep_s=0.1)
    (item,) = await crew.send("ada", "hello")
    await crew.over(item)
    assert len(await crew.events(FlightAcquired)) == 1
    (ended,) = await crew.events(TurnEnded)
    assert ended.outcome == Completed("so")
