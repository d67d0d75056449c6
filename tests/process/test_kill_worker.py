"""A worker is killed in the middle of a turn: another one goes on from the last step."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest

from tests.process.crew import Crew, call, lines, locked
from undivided.domain.events.flights import FlightAcquired
from undivided.domain.events.sessions import (
    ModelResponded,
    ToolCallFinished,
    ToolCallStarted,
    TurnEnded,
    TurnResumed,
)
from undivided.domain.outcomes import Completed
from undivided.domain.turn import INTERRUPTED

pytestmark = pytest.mark.process


class TestInAModelCall:
    """The request was not answered yet: it is asked again, and only it."""

    async def test_the_turn_goes_on_elsewhere(self, crew: Crew, tmp_path: Path) -> None:
        """C04, C42: the item is still in its turn, and its turn is found at once."""
        witness = tmp_path / "witness"
        await crew.agent(
            "ada",
            {"step": 0, "calls": [call("test_append", path=str(witness), line="x")]},
            {"step": 1, "reply": "finished", "delay": 3},
        )
        crew.hire()
        (item,) = await crew.send("ada", "hello")
        await crew.recorded(ToolCallFinished)
        crew.kill(await crew.pilot("ada"))
        crew.hire()
        await crew.over(item)
        responses = await crew.events(ModelResponded)
        assert [one.step for one in responses] == [0, 1]
        assert witness.read_text() == "x\n"
        (resumed,) = await crew.events(TurnResumed)
        assert (resumed.cause, resumed.epoch) == ("orphaned", 2)
        (ended,) = await crew.events(TurnEnded)
        assert ended.outcome == Completed("finished")
        assert ended.usage.requests == 2
        assert [one.taken_from for one in await crew.events(FlightAcquired)] == [None, 1]


EFFECTS = ("pure", "idempotent", "once")


class TestInATool:
    """What becomes of a call that was started and has no result is for its effect to say."""

    async def test_before_it_took_effect(self, crew: Crew, tmp_path: Path) -> None:
        """C57: pure and idempotent run again; once is answered and never run."""
        with ExitStack() as held:
            for effect in EFFECTS:
                held.enter_context(locked(tmp_path / effect))
            await self.killed(crew, tmp_path)
        await self.carried_on(crew)
        assert {e: lines(tmp_path / e) for e in EFFECTS} == {"pure": 1, "idempotent": 1, "once": 0}
        await self.told(crew)

    async def test_after_it_took_effect(self, crew: Crew, tmp_path: Path) -> None:
        """C57: the effect is there once, but for a pure tool, whose effect is none."""
        with psycopg.connect(crew.settings.database_owner_url) as blocker:
            with ExitStack() as held:
                for effect in EFFECTS:
                    held.enter_context(locked(tmp_path / effect))
                await self.started(crew, tmp_path)
                blocker.execute("SELECT 1 FROM streams WHERE stream LIKE 'session:%' FOR UPDATE")
            await crew.blocked_by(blocker, 3)
            crew.kill(crew.stack.pids("worker")[0])
            await crew.ended_by_hand(blocker)
        assert {e: lines(tmp_path / e) for e in EFFECTS} == {"pure": 1, "idempotent": 1, "once": 1}
        await self.carried_on(crew)
        assert {e: lines(tmp_path / e) for e in EFFECTS} == {"pure": 2, "idempotent": 1, "once": 1}
        await self.told(crew)

    async def started(self, crew: Crew, tmp_path: Path) -> None:
        """Three agents with a tool each, all of them running and none of them done."""
        crew.hire()
        for effect in EFFECTS:
            path = str(tmp_path / effect)
            append = call("test_append", path=path, line="done", effect=effect)
            await crew.agent(effect, {"step": 0, "calls": [append]}, {"step": 1, "reply": "so"})
            await crew.send(effect, "go")
        await crew.recorded(ToolCallStarted, 3)

    async def killed(self, crew: Crew, tmp_path: Path) -> None:
        await self.started(crew, tmp_path)
        crew.kill(crew.stack.pids("worker")[0])

    async def carried_on(self, crew: Crew) -> None:
        crew.hire()
        await crew.recorded(TurnEnded, 3)

    async def told(self, crew: Crew) -> None:
        """Nobody was asked twice, each call has its result, and only `once` is in doubt."""
        assert len(await crew.events(ModelResponded)) == 6
        results = {one.turn_id: one for one in await crew.events(ToolCallFinished)}
        assert len(results) == len(await crew.events(ToolCallFinished)) == 3
        started = {one.turn_id: one for one in await crew.events(ToolCallStarted)}
        assert len(started) == len(await crew.events(ToolCallStarted)) == 3
        for turn_id, result in results.items():
            in_doubt = started[turn_id].effect == "once"
            assert (result.resolution == "interrupted") is in_doubt
            assert (result.content == INTERRUPTED) is in_doubt
        assert all(one.outcome == Completed("so") for one in await crew.events(TurnEnded))
