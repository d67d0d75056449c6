"""What an agent can meet: items of a newer release, another agent's session, a small pool."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from tests.races.hand import hired
from tests.races.staging import Stage
from tests.support.lives import BY, accept, answer, begin, create, response
from undivided.domain import mailbox
from undivided.domain.events.flights import FlightAcquired
from undivided.domain.events.items import Payload, Sender, StimulusAccepted
from undivided.domain.events.sessions import SessionOpened, TurnStarted
from undivided.domain.recorded import Meta
from undivided.domain.waits import Sleep
from undivided.store import landing
from undivided.store.commands import agents
from undivided.store.flights import QUEUE_SEEN
from undivided.store.fresh import fresh_id
from undivided.store.log import Log
from undivided.store.settings import Settings
from undivided.store.takeoff import take_off


async def accept_from_the_future(log: Log, agent_id: str, count: int) -> None:
    """Items of a type that only a newer release knows."""
    async with log.locked(agent_id) as tx:
        events = tuple(
            StimulusAccepted(
                agent_id=agent_id, item_id=fresh_id("mbx"), seq=tx.agent.next_seq + n,
                source_type="from_the_future", priority=0, payload=Payload("?"), sender=Sender(),
                delivery="queue",
            )
            for n in range(count)
        )  # fmt: skip
        await tx.append([tx.addition(*events)], BY)


async def accept_in(log: Log, agent_id: str, session_id: str) -> str:
    command = mailbox.Accept(
        item_id=fresh_id("mbx"), source_type="human_chat", payload=Payload("in a session"),
        session_id=session_id,
    )  # fmt: skip
    async with log.locked(agent_id) as tx:
        await tx.append([tx.addition(*mailbox.accept(tx.agent, (command,)))], BY)
    return command.item_id


class TestItemsOfANewerRelease:
    """C32: they wait for a worker that knows them, and stand in nobody's way."""

    async def test_they_stay(self, log: Log, stage: Stage, settings: Settings) -> None:
        """C32: never terminal, never even picked."""
        await create(log, "ada")
        await accept_from_the_future(log, "ada", 1)
        async with hired(settings) as hand:
            await hand.attend("ada")
            assert hand.model.asked == []
        assert await stage.ask("SELECT status FROM items") == [("queued",)]
        assert await stage.events(FlightAcquired) == []

    async def test_a_view_full_of_them_hides_nothing(self, log: Log, settings: Settings) -> None:
        """C32: what this release knows is found behind any number of them."""
        await create(log, "ada")
        await accept_from_the_future(log, "ada", QUEUE_SEEN + 1)
        await accept(log, "ada", "one", "two")
        async with hired(settings) as hand:
            await hand.attend("ada")
            assert hand.model.inputs() == ["one", "two"]

    async def test_they_keep_the_sweep_from_nobody(self, log: Log, settings: Settings) -> None:
        """C32: chance decides, so that an agent that can be helped is found among them."""
        for number in range(6):
            await create(log, f"a{number}")
            await accept_from_the_future(log, f"a{number}", 1)
        await create(log, "ada")
        await accept(log, "ada", "one")
        async with hired(settings) as hand:
            found = [await hand.locks.sweep(30, 1) for _ in range(200)]
        assert any(swept.agents == ("ada",) for swept in found)

    async def test_a_sleeper_is_woken_from_behind_what_does_not_wake(self, log: Log) -> None:
        """C32: a turn that waits sees the person behind a view full of notifications."""
        await create(log, "ada")
        await accept(log, "ada", "one")
        flight = await begin(log, "ada")
        await landing.record(log, flight, response(flight, "", "rest"))
        await landing.suspend(log, flight, flight.state.open[0].call.id, Sleep(600))
        commands = tuple(
            mailbox.Accept(item_id=fresh_id("mbx"), source_type="task_notification",
                           payload=Payload("fyi"), priority=0)
            for _ in range(QUEUE_SEEN + 1)
        )  # fmt: skip
        async with log.locked("ada") as tx:
            await tx.append([tx.addition(*mailbox.accept(tx.agent, commands))], BY)
        assert await take_off(log, "ada", "wrk_2") is None
        await accept(log, "ada", "hello?")
        woken = await begin(log, "ada")
        assert woken.turn.id == flight.turn.id


class TestAnothersSession:
    """A session has one agent; whoever names another's gets one of its own."""

    async def test_it_is_there_already(self, log: Log) -> None:
        """The turn goes into a session of its own, and reads nothing of the other."""
        await create(log, "ada")
        await create(log, "bob")
        await accept_in(log, "ada", "shared")
        await accept_in(log, "bob", "shared")
        assert await answer(log, await begin(log, "ada"), "so") is None
        flight = await begin(log, "bob")
        assert flight.session.id != "shared"
        assert flight.turn.index == 0
        assert await answer(log, flight, "so") is None

    async def test_it_appears_in_the_same_moment(
        self, log: Log, stage: Stage, settings: Settings
    ) -> None:
        """One opens it; the other starts over, and has its own."""
        for agent in ("ada", "bob"):
            await create(log, agent)
            await accept_in(log, agent, "shared")
        async with hired(settings) as hand:
            await asyncio.gather(hand.attend("ada"), hand.attend("bob"))
            await asyncio.gather(hand.attend("ada"), hand.attend("bob"))
        opened = await stage.events(SessionOpened)
        assert sorted(one.agent_id for one in opened) == ["ada", "bob"]
        assert len({one.session_id for one in opened}) == 2

    async def test_it_appears_while_a_turn_turns_to_it(self, log: Log, stage: Stage) -> None:
        """The turn at work ends all the same, and loses nothing of its answer."""
        for agent in ("ada", "bob"):
            await create(log, agent)
            await accept(log, agent, "first")
        ada, bob = await begin(log, "ada"), await begin(log, "bob")
        await accept_in(log, "ada", "shared")
        await accept_in(log, "bob", "shared")
        async with stage.holding("session:ses_ada", "session:ses_bob"):
            both = [
                await stage.begin_waiting(answer(log, ada, "so")),
                await stage.begin_waiting(answer(log, bob, "so")),
            ]
        following = await asyncio.gather(*both)
        assert sorted(f is None for f in following) == [False, True]
        started = await stage.events(TurnStarted)
        assert [one.session_id for one in started].count("shared") == 1


class TestASmallPool:
    """C40: no transaction wants a second connection while it holds the first."""

    async def test_many_flights_on_one_connection(self, stage: Stage, settings: Settings) -> None:
        """C40: they take turns; none of them hangs."""
        async with hired(settings, connections=1) as hand:
            hand.model.calls = [[("update_working_memory", {"key": "k", "content": "c"})]] * 20
            for number in range(10):
                await create(hand.log, f"a{number}")
                await accept(hand.log, f"a{number}", "one", "two")
            async with asyncio.timeout(20):
                await asyncio.gather(*(hand.attend(f"a{number}") for number in range(10)))
        ended = await stage.ask("SELECT DISTINCT status FROM items")
        assert {status for (status,) in ended} <= {"completed", "merged"}

    async def test_many_deletions_on_one_connection(self, stage: Stage, settings: Settings) -> None:
        """C40: the items that wait are read on the connection that holds the lock."""
        async with hired(settings, connections=1) as hand:
            outlet = hand.outlet
            for number in range(5):
                await create(hand.log, f"a{number}")
                await accept(hand.log, f"a{number}", "one")
            async with asyncio.timeout(4):
                await asyncio.gather(
                    *(agents.delete(outlet, f"a{number}", Meta()) for number in range(5))
                )
        assert await stage.ask("SELECT DISTINCT status FROM items") == [("cancelled",)]


class TestManyAtOnce:
    """Producers, flights and failures on few agents: everybody gets through."""

    async def test_no_deadlock(self, log: Log, stage: Stage, settings: Settings) -> None:
        """Locks come in one order, and the order of the log is right afterwards."""
        async with hired(settings, connections=12) as hand:
            for number in range(3):
                await create(log, f"a{number}")

            async def produce(number: int) -> None:
                for n in range(8):
                    await accept(log, f"a{number % 3}", f"{number}.{n}")

            async def work(number: int) -> None:
                for _ in range(10):
                    await hand.attend(f"a{number}")

            async with asyncio.timeout(30):
                await asyncio.gather(
                    *(produce(number) for number in range(9)),
                    *(work(number) for number in range(3)),
                )
                for number in range(3):
                    await hand.attend(f"a{number}")
        assert await stage.ask("SELECT status, count(*) FROM items GROUP BY 1") == [
            ("completed", 72)
        ]
        deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
        assert await stage.ask(deadlocks) == [(0,)]


class TestAClockThatIsWrong:
    """C33: due times and leases are judged by Postgres."""

    async def test_ten_minutes_fast(self, log: Log, stage: Stage, settings: Settings) -> None:
        """C33: nothing is picked early, no lease is over early, and the log's times are right."""
        await create(log, "ada")
        await accept(log, "ada", "one")
        flight = await begin(log, "ada")
        await landing.record(log, flight, response(flight, "", "rest"))
        await landing.suspend(log, flight, flight.state.open[0].call.id, Sleep(60))
        async with hired(settings) as hand:
            clock = hand.log.database.clock
            clock.heard(await hand.log.database.hear_clock() + timedelta(minutes=10))
            assert await take_off(hand.log, "ada", "wrk_2") is None
            assert await hand.sweep() == ()
            clock.heard(clock.now() + timedelta(minutes=10))
            await accept(hand.log, "ada", "two")
        ((late,),) = await stage.ask("SELECT max(recorded_at) > now() FROM events")
        assert late is False
