"""Lost wake-ups: whatever arrives at whatever moment gets its turn without a third stimulus."""

from __future__ import annotations

import asyncio

from tests.races.hand import Hand, hired
from tests.races.staging import Stage
from tests.support.lives import accept, answer, begin, create
from undivided.domain.events.flights import FlightAcquired
from undivided.domain.events.items import Payload
from undivided.domain.events.sessions import TurnEnded, TurnStarted
from undivided.domain.mailbox import Accept
from undivided.domain.recorded import Meta
from undivided.store.commands import agents
from undivided.store.commands.accepting import accept_stimuli
from undivided.store.fresh import fresh_id
from undivided.store.log import Log
from undivided.store.settings import Settings

BY = Meta(actor="test")


def stimulus(content: str) -> Accept:
    return Accept(item_id=fresh_id("mbx"), source_type="human_chat", payload=Payload(content))


async def statuses(stage: Stage) -> list[str]:
    return [status for (status,) in await stage.ask("SELECT status FROM items ORDER BY seq")]


class TestTheEndOfATurn:
    """C01: ending, and nothing being there to do, are one check."""

    async def test_145_it_arrives_while_the_last_token_is_awaited(
        self, log: Log, stage: Stage, settings: Settings
    ) -> None:
        """C01: nobody is rung for, and the same flight turns to it."""
        await create(log, "ada")
        await accept(log, "ada", "one")
        async with hired(settings) as hand:
            at_work = await hand.at_the_model("ada")
            outlet = hand.outlet
            await accept_stimuli(outlet, "ada", [stimulus("two")], BY)
            assert hand.bell.rung == []
            hand.model.gate.set()
            await at_work
            assert hand.model.inputs() == ["one", "two"]
        assert await statuses(stage) == ["completed", "completed"]
        assert len(await stage.events(FlightAcquired)) == 1

    async def test_it_is_accepted_just_before(self, log: Log, stage: Stage) -> None:
        """C01: the end waits for the acceptance, and sees it."""
        await create(log, "ada")
        await accept(log, "ada", "one")
        flight = await begin(log, "ada")
        async with stage.holding("agent:ada"):
            producer = await stage.begin_waiting(accept(log, "ada", "two"))
            ending = await stage.begin_waiting(answer(log, flight, "so"))
        await producer
        following = await ending
        assert following is not None
        assert following.turn.index == 1

    async def test_024_027_it_is_accepted_just_after(
        self, log: Log, stage: Stage, settings: Settings
    ) -> None:
        """C01: the acceptance waits for the end, finds the agent idle, and rings."""
        await create(log, "ada")
        await accept(log, "ada", "one")
        flight = await begin(log, "ada")
        async with hired(settings) as hand:
            outlet = hand.outlet
            async with stage.holding("agent:ada"):
                ending = await stage.begin_waiting(answer(log, flight, "so"))
                producer = await stage.begin_waiting(
                    accept_stimuli(outlet, "ada", [stimulus("two")], BY)
                )
            assert await ending is None
            await producer
            assert hand.bell.rung == ["ada"]
            await hand.attend("ada")
        assert await statuses(stage) == ["completed", "completed"]

    async def test_at_any_time(self, log: Log, stage: Stage, settings: Settings) -> None:
        """C01: many agents, each with a message that comes while its turn runs its course."""
        async with hired(settings) as hand:
            outlet = hand.outlet

            async def one(number: int) -> None:
                agent = f"a{number}"
                await create(log, agent)
                await accept_stimuli(outlet, agent, [stimulus("one")], BY)
                at_work = asyncio.create_task(hand.attend(agent))
                for _ in range(number % 7 * 3):
                    await asyncio.sleep(0)
                await accept_stimuli(outlet, agent, [stimulus("two")], BY)
                if hand.bell.rung.count(agent) > 1:
                    await hand.attend(agent)
                await at_work

            await asyncio.gather(*(one(number) for number in range(60)))
        assert set(await statuses(stage)) == {"completed"}
        assert len(await stage.events(TurnStarted)) == 120


class TestTheReleaseOfALock:
    """C02: the turn is over, and the worker has not let go of the agent yet."""

    async def test_whoever_answers_the_ring_waits_for_it(
        self, log: Log, stage: Stage, settings: Settings
    ) -> None:
        """C02: the agent is idle although it is locked; that can only last a moment."""
        await create(log, "ada")
        await accept(log, "ada", "one")
        async with hired(settings) as first, hired(settings) as second:
            assert await first.locks.try_acquire("ada")
            assert await answer(log, await begin(log, "ada"), "so") is None
            await accept(log, "ada", "two")
            answering = asyncio.create_task(second.attend("ada"))
            await self.refused(second)
            await first.locks.release("ada")
            await answering
            assert second.model.inputs() == ["two"]
        assert await statuses(stage) == ["completed", "completed"]

    async def test_the_same_worker_answers_the_ring(self, log: Log, settings: Settings) -> None:
        """C02: session locks are re-entrant; what the process holds, it does not take twice."""
        await create(log, "ada")
        await accept(log, "ada", "one")
        async with hired(settings) as hand:
            assert await hand.locks.try_acquire("ada")
            assert not await hand.locks.try_acquire("ada")
            assert await answer(log, await begin(log, "ada"), "so") is None
            await accept(log, "ada", "two")
            answering = asyncio.create_task(hand.attend("ada"))
            await asyncio.sleep(0)
            await hand.locks.release("ada")
            await answering
            assert hand.model.inputs() == ["two"]

    async def test_patience_has_an_end_and_the_sweep_none(
        self, log: Log, stage: Stage, settings: Settings
    ) -> None:
        """C02, C42: a ring that was given up is found by the sweep."""
        await create(log, "ada")
        async with hired(settings) as first, hired(settings) as second:
            assert await first.locks.try_acquire("ada")
            await accept(log, "ada", "one")
            await second.attend("ada")
            assert second.model.asked == []
            await first.locks.release("ada")
            assert await second.sweep() == ("ada",)
            await second.attend("ada")
        assert await statuses(stage) == ["completed"]

    async def refused(self, hand: Hand) -> None:
        """Wait until the lock was tried for, and not obtained."""
        async with asyncio.timeout(5):
            while "ada" not in hand.locks.held:
                await asyncio.sleep(0)
            while "ada" in hand.locks.held:
                await asyncio.sleep(0)


class TestReadingTheMailbox:
    """C04, C05: what was read counts for nothing; what was recorded counts."""

    async def test_a_worker_dies_after_reading(
        self, log: Log, stage: Stage, settings: Settings
    ) -> None:
        """C04: it is still waiting, and the next turn is told it."""
        await create(log, "ada")
        await accept(log, "ada", "one")
        assert await answer(log, await begin(log, "ada"), "so") is None
        (item,) = await accept(log, "ada", "two")
        async with hired(settings, name="doomed") as doomed:
            async with stage.holding("session:ses_ada"):
                dying = await stage.begin_waiting(doomed.attend("ada"))
                await stage.ask(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE wait_event_type = 'Lock' AND datname = current_database()"
                )
                await dying
            assert doomed.model.asked == []
        assert (await stage.ask("SELECT status FROM items WHERE id = %s", item)) == [("queued",)]
        async with hired(settings) as hand:
            await hand.attend("ada")
            assert hand.model.read() == [["one", "two"]]

    async def test_five_thousand_unread(self, log: Log, stage: Stage, settings: Settings) -> None:
        """C05: each has a turn of its own, in order, and none has two.

        A twentieth of them here, on four agents; nothing in it depends on the number.
        """
        async with hired(settings) as hand:
            for number in range(4):
                await create(log, f"a{number}")
                await accept(log, f"a{number}", *(f"{n}" for n in range(60)))
            await asyncio.gather(*(hand.attend(f"a{number}") for number in range(4)))
            for number in range(4):
                told = [r.newest_input for r in hand.model.asked if r.agent_id == f"a{number}"]
                assert told == [f"{n}" for n in range(60)]
        assert len(await stage.events(TurnEnded)) == 240


class TestLifeAndWork:
    """C29: busy is what the rows say, and every command that ends a rest rings."""

    async def test_a_stopped_agent_is_started_while_its_turn_ends(
        self, log: Log, stage: Stage, settings: Settings
    ) -> None:
        """C29: the interrupted item waits again, and is picked again."""
        await create(log, "ada")
        await accept(log, "ada", "one")
        async with hired(settings) as hand:
            outlet = hand.outlet
            at_work = await hand.at_the_model("ada")
            await agents.stop(outlet, "ada", BY)
            await agents.start(outlet, "ada", BY)
            hand.model.gate.set()
            await at_work
        assert await statuses(stage) == ["completed"]
        assert [type(one.outcome).__name__ for one in await stage.events(TurnEnded)] == [
            "Interrupted",
            "Completed",
        ]
