"""A turn that waits holds nothing, whoever comes and goes meanwhile."""

from __future__ import annotations

import signal

import pytest

from tests.process.crew import BY, Crew, call
from tests.process.seen import Seen
from undivided.domain.events.sessions import (
    ModelResponded,
    ToolCallFinished,
    ToolCallStarted,
    TurnEnded,
    TurnResumed,
    TurnSuspended,
)
from undivided.domain.outcomes import Cancelled, Completed
from undivided.store.commands.sessions import stop_turn

pytestmark = pytest.mark.process

A_LONG_REST = call("sleep", seconds=3600)
RESTS = (
    {"contains": "wake", "reply": "up"},
    {"step": 0, "calls": [A_LONG_REST]},
    {"reply": "awake"},
)


async def nobody_is_held(seen: Seen) -> bool:
    """No lock and no flight on any agent, and no transaction under way."""
    async with seen.database.connection() as connection:
        cursor = await connection.execute(
            "SELECT (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database ="
            "  (SELECT oid FROM pg_database WHERE datname = current_database()))"
            " + (SELECT count(*) FROM flights WHERE held)"
            " + (SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            "  AND state LIKE 'idle in transaction%')"
        )
        return await cursor.fetchone() == (0,)


async def test_more_of_them_than_could_be_at_work(crew: Crew) -> None:
    """Twelve rest on the four threads of one worker, and who comes next is served at once."""
    names = [f"r{number}" for number in range(12)]
    for name in names:
        await crew.agent(name, *RESTS)
    await crew.agent("ada", {"reply": "so"})
    crew.hire()
    items = [(await crew.send(name, "rest"))[0] for name in names]
    await crew.recorded(TurnSuspended, len(names))
    await crew.until(lambda: nobody_is_held(crew))
    (served,) = await crew.send("ada", "hello")
    await crew.over(served)
    for name in names:
        await crew.send(name, "wake up")
    await crew.over(*items)
    assert len(await crew.events(ToolCallStarted)) == len(names)


async def test_all_workers_were_restarted_meanwhile(crew: Crew) -> None:
    """Its time, something new and a stop reach a turn that no living worker has ever seen."""
    brief = call("sleep", seconds=1.5)
    await crew.agent("tim", {"step": 0, "calls": [brief]}, {"step": 1, "reply": "awake"})
    for name in ("eva", "rip"):
        await crew.agent(name, *RESTS)
    workers = [crew.hire(), crew.hire()]
    tim, eva, rip = [(await crew.send(name, "rest"))[0] for name in ("tim", "eva", "rip")]
    await crew.recorded(TurnSuspended, 3)
    for pid, sign in zip(workers, (signal.SIGKILL, signal.SIGTERM), strict=True):
        crew.kill(pid, sign)
        await crew.left(pid)
    await crew.send("eva", "the second")
    await stop_turn(crew.outlet, "ses_rip", BY)
    crew.hire()
    await crew.over(tim, eva, rip)
    for name, how in (("tim", "waited"), ("eva", "woken"), ("rip", "skipped")):
        (result, *_) = await crew.events(ToolCallFinished, name)
        assert result.resolution == how
        assert "the second" not in result.content
    ended = {name: (await crew.events(TurnEnded, name))[0].outcome for name in ("tim", "eva")}
    assert ended == dict.fromkeys(("tim", "eva"), Completed("awake"))
    (stopped,) = await crew.events(TurnEnded, "rip")
    assert stopped.outcome == Cancelled("test")
    assert [one.step for one in await crew.events(ModelResponded, "tim")] == [0, 1]
    assert [one.step for one in await crew.events(ModelResponded, "rip")] == [0]
    assert (await crew.events(TurnResumed, "tim"))[0].cause == "waited"
