"""What is left of a process that is gone, and found by the next one.

The numbers are those of the behaviour catalogue. Where its recovery drops or completes what was in
processing, DESIGN lets the turn go on from its last recorded step: nothing is lost and nothing is
done twice, which is what those scenarios are about.
"""

from __future__ import annotations

import pytest

from tests.races.hand import hired
from tests.races.staging import Stage
from tests.races.test_interrupts import send
from tests.support.lives import BY, accept, answer, begin, create
from undivided.domain.errors import Conflict, StaleFlight
from undivided.domain.events.items import ItemPicked, ItemRequeued
from undivided.domain.events.sessions import TurnEnded, TurnResumed
from undivided.domain.outcomes import Completed, Interrupted, TimedOut
from undivided.store.commands import agents
from undivided.store.log import Log
from undivided.store.settings import Settings


async def statuses(stage: Stage) -> list[str]:
    """The items' statuses, in the order of acceptance."""
    return [status for (status,) in await stage.ask("SELECT status FROM items ORDER BY seq")]


class TestAfterACrash:
    """A worker is gone in the middle of a turn."""

    async def test_063_067_077_what_was_in_processing_goes_on(
        self, log: Log, stage: Stage, settings: Settings
    ) -> None:
        """And what waited is behind it; none is left in processing."""
        await create(log, "ada")
        await send(log, "a2a_message", "one")
        await send(log, "heartbeat", "two")
        await begin(log, "ada", "wrk_gone")
        assert await statuses(stage) == ["processing", "queued"]
        async with hired(settings) as hand:
            assert await hand.sweep() == ("ada",)
            await hand.attend("ada")
            assert hand.model.inputs() == ["one", "two"]
            assert await hand.sweep() == ()
        assert await statuses(stage) == ["completed", "completed"]
        assert [one.cause for one in await stage.events(TurnResumed)] == ["orphaned"]
        assert len(await stage.events(ItemPicked)) == 2

    async def test_072_073_what_is_done_stays_so(
        self, log: Log, stage: Stage, settings: Settings
    ) -> None:
        """However often one looks, there is nothing twice."""
        await create(log, "ada")
        await accept(log, "ada", "one")
        assert await answer(log, await begin(log, "ada"), "so") is None
        async with hired(settings) as hand:
            for _ in range(2):
                assert await hand.sweep() == ()
                await hand.attend("ada")
            assert hand.model.asked == []
        assert await statuses(stage) == ["completed"]

    async def test_065_076_what_waits_is_found(
        self, log: Log, stage: Stage, settings: Settings
    ) -> None:
        """By the sweep of whoever comes, although nobody rang for it."""
        await create(log, "ada")
        await send(log, "a2a_message", "work")
        async with hired(settings) as hand:
            assert await hand.sweep() == ("ada",)
            await hand.attend("ada")
        assert await statuses(stage) == ["completed"]


class TestLate:
    """An attempt that is over has no say any more."""

    async def test_139_140_a_late_answer_changes_nothing(self, log: Log, stage: Stage) -> None:
        """The backstop came first: the item has another attempt, and its reply counts."""
        await create(log, "ada")
        (item,) = await accept(log, "ada", "one")
        first = await begin(log, "ada")
        second = await answer(log, first, "", TimedOut(0.04))
        assert second is not None
        with pytest.raises((StaleFlight, Conflict)):
            await answer(log, first, "too late")
        assert await answer(log, second, "in time") is None
        assert [one.reason for one in await stage.events(ItemRequeued)] == ["timed_out"]
        assert [one.outcome for one in await stage.events(TurnEnded)] == [
            TimedOut(0.04),
            Completed("in time"),
        ]
        assert await stage.ask("SELECT id, status FROM items") == [(item, "completed")]


class TestStopped:
    """An agent is stopped at work."""

    async def test_141_the_item_waits_again(
        self, log: Log, stage: Stage, settings: Settings
    ) -> None:
        """Ruling 28: no retry is used up; once started, the agent handles it."""
        await create(log, "ada")
        await accept(log, "ada", "one")
        async with hired(settings) as hand:
            outlet = hand.outlet
            at_work = await hand.at_the_model("ada")
            await agents.stop(outlet, "ada", BY)
            (turn_id,) = (await hand.locks.sweep(30, 8)).stops
            hand.attendant.stop_turn(turn_id)
            await at_work
            assert await statuses(stage) == ["queued"]
            (back,) = await stage.events(ItemRequeued)
            assert back.reason == "agent_stopped"
            hand.model.gate.set()
            await hand.attend("ada")
            assert len(hand.model.asked) == 1
            await agents.start(outlet, "ada", BY)
            await hand.attend("ada")
        assert await statuses(stage) == ["completed"]
        ended = [one.outcome for one in await stage.events(TurnEnded)]
        assert isinstance(ended[0], Interrupted)
        assert ended[1:] == [Completed("so")]

    async def test_149_every_handled_item_has_its_decisions(
        self, log: Log, stage: Stage, settings: Settings
    ) -> None:
        """At least one each: why it was picked, and why it is over."""
        await create(log, "ada")
        items = await accept(log, "ada", "one", "two", "three")
        async with hired(settings) as hand:
            await hand.attend("ada")
        rows = await stage.ask("SELECT item_id, count(*) FROM decisions GROUP BY 1")
        assert {item for item, _ in rows} == set(items)
        assert all(count >= 2 for _, count in rows)
