"""What the clock brings, brought by real workers."""

from __future__ import annotations

import signal

import pytest

from tests.process.crew import Crew
from tests.races.test_heartbeat import all_due, due, skipped
from undivided.domain.events import heartbeats as h
from undivided.domain.events.sessions import TurnEnded, TurnStarted
from undivided.domain.outcomes import Completed

pytestmark = pytest.mark.process

RULES = (
    {"scenario": "heartbeat", "contains": "## Checklist", "reply": "all is well"},
    {"scenario": "memory_consolidation", "reply": "kept in mind"},
    {"scenario": "system", "contains": "daily report", "reply": "nothing happened"},
    {"reply": "hello"},
)


async def test_three_workers_bring_each_of_them_once(crew: Crew) -> None:
    """And their turns are of the scenarios that the types say."""
    await crew.agent("ada", *RULES, dailyReportAt="20:00", triage="off")
    await crew.send("ada", "news", kind="a2a_message")
    for _ in range(3):
        crew.hire()
    await crew.recorded(TurnEnded, 1)
    await all_due(crew.outlet.log)
    await crew.recorded(TurnEnded, 4)
    said = {
        turn.scenario: end.outcome
        for turn, end in zip(
            await crew.events(TurnStarted), await crew.events(TurnEnded), strict=True
        )
    }
    assert said == {
        "a2a": Completed("hello"), "heartbeat": Completed("all is well"),
        "system": Completed("nothing happened"), "memory_consolidation": Completed("kept in mind"),
    }  # fmt: skip


async def test_what_came_due_while_nobody_lived(crew: Crew) -> None:
    """Just now: it comes at once. Long ago: it comes later, and not twice."""
    for name in ("ada", "bob"):
        await crew.agent(name, *RULES)
    worker = crew.hire()
    await crew.send("ada", "hello")
    await crew.recorded(TurnEnded, 1)
    crew.kill(worker, signal.SIGKILL)
    await crew.left(worker)
    await skipped(crew.outlet.log, 7 * 86_400, 0)
    await due(crew.outlet.log, agent_id="bob")
    for _ in range(2):
        crew.hire()
    await crew.recorded(TurnEnded, 2)
    (beat,) = await crew.events(h.HeartbeatEnqueued)
    assert beat.agent_id == "bob"
    await crew.recorded(h.HeartbeatScheduled, 2)
    moved = (await crew.events(h.HeartbeatScheduled, "ada"))[-1]
    assert moved.missed_s >= 7 * 86_400
