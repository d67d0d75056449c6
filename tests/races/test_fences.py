"""Leases, rescue and fencing: who has lost an agent cannot write for it any more."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.races.hand import hired
from tests.races.staging import Stage
from tests.support.lives import BY, accept, answer, begin, create, response
from undivided.domain import agents
from undivided.domain.errors import Conflict, StaleFlight
from undivided.domain.events.flights import FlightAcquired, FlightFenced
from undivided.domain.events.sessions import ModelResponded, ToolCallFinished, TurnEnded
from undivided.domain.memory import NoteMemory
from undivided.domain.outcomes import Failed
from undivided.domain.policy import DEFAULT_POLICY
from undivided.domain.recorded import agent_stream
from undivided.domain.waits import Sleep
from undivided.store import acting, landing
from undivided.store.flights import Flight
from undivided.store.log import Addition, Log
from undivided.store.settings import Settings

LONG_NAME = "worker-of-a-deployment-with-a-rather-long-name-7d9f8b6c5d-x2k4p"


async def at_work(log: Log, *contents: str, agent: str = "ada") -> Flight:
    """An agent in the middle of a turn, with a tool call open."""
    await create(log, agent)
    await accept(log, agent, *(contents or ("one",)))
    flight = await begin(log, agent)
    await landing.record(log, flight, response(flight, "", "look"))
    return flight


def finished(flight: Flight) -> ToolCallFinished:
    return ToolCallFinished(
        turn_id=flight.turn.id, call_id=flight.state.open[0].call.id, tool="look",
        resolution="returned", content="", epoch=flight.epoch,
    )  # fmt: skip


LATE: dict[str, Callable[[Log, Flight], Awaitable[Any]]] = {
    "record": lambda log, flight: landing.record(log, flight, finished(flight)),
    "act": lambda log, flight: acting.act(
        log, flight, flight.state.open[0].call, NoteMemory("key", "content")
    ),
    "suspend": lambda log, flight: landing.suspend(
        log, flight, flight.state.open[0].call.id, Sleep(1)
    ),
    "yield_to_others": landing.yield_to_others,
    "end": lambda log, flight: answer(log, flight, "late"),
    "fail": lambda log, flight: answer(log, flight, "", Failed("x", "", retryable=False)),
}


class TestTheEpoch:
    """Every append of a flight names its epoch; one that is over is refused."""

    async def test_another_flight_is_at_work(self, log: Log, stage: Stage) -> None:
        """C22: nothing of it is written, whatever it was."""
        for name, late in LATE.items():
            flight = await at_work(log, agent=name)
            await begin(log, name, "wrk_2")
            before = await stage.ask("SELECT count(*) FROM events")
            with pytest.raises(StaleFlight):
                await late(log, flight)
            assert await stage.ask("SELECT count(*) FROM events") == before

    async def test_another_flight_has_ended_the_turn(self, log: Log) -> None:
        """C22: also when the agent has long turned to something else, or to nothing."""
        for name, late in LATE.items():
            flight = await at_work(log, "one", "two", agent=name)
            following = await answer(log, await begin(log, name, "wrk_2"), "so")
            assert following is not None
            with pytest.raises(StaleFlight):
                await late(log, flight)
            assert await answer(log, following, "so") is None
            with pytest.raises(StaleFlight):
                await late(log, flight)

    async def test_the_refusal_is_recorded(
        self, log: Log, stage: Stage, settings: Settings
    ) -> None:
        """C22: a late answer of a model ends as `flight.fenced`."""
        await create(log, "ada")
        await accept(log, "ada", "one")
        async with hired(settings) as hand:
            slow = await hand.at_the_model("ada")
            assert await answer(log, await begin(log, "ada", "wrk_2"), "so") is None
            hand.model.gate.set()
            await slow
        (fenced,) = await stage.events(FlightFenced)
        assert (fenced.epoch, fenced.current_epoch, fenced.refused) == (1, 2, ("stale_flight",))
        assert [one.text for one in await stage.events(ModelResponded)] == ["so"]

    async def test_two_appends_that_expect_the_same(self, log: Log, stage: Stage) -> None:
        """C58: one wins, the other is told what is there, and nothing is merged."""
        await create(log, "ada")
        await accept(log, "ada", "one")
        flight = await begin(log, "ada")
        async with stage.holding("session:ses_ada"):
            both = [
                await stage.begin_waiting(landing.record(log, flight, response(flight, text, "x")))
                for text in ("first", "second")
            ]
        outcomes = await asyncio.gather(*both, return_exceptions=True)
        (refused,) = [one for one in outcomes if one is not None]
        assert isinstance(refused, Conflict)
        assert (refused.expected, refused.actual) == (2, 3)
        assert len(await stage.events(ModelResponded)) == 1

    async def test_two_agents_of_one_name(self, log: Log) -> None:
        """C58: a stream that must not exist yet exists once."""
        command = agents.CreateAgent(agent_id="ada", name="ada")
        addition = Addition(agent_stream("ada"), 0, agents.create(DEFAULT_POLICY, command))
        outcomes = await asyncio.gather(
            *(log.append([addition], BY) for _ in range(5)), return_exceptions=True
        )
        assert [type(one) for one in outcomes if isinstance(one, Exception)] == [Conflict] * 4


class TestTheRescue:
    """What the sweep found is decided again, under the lock, by whoever comes."""

    async def test_the_turn_ended_meanwhile(
        self, log: Log, stage: Stage, settings: Settings
    ) -> None:
        """C23: between the look and the act the turn was completed; nothing is touched."""
        flight = await at_work(log)
        async with hired(settings) as hand:
            assert await hand.sweep() == ("ada",)
            assert await answer(log, flight, "so") is None
            before = await stage.ask("SELECT count(*) FROM events")
            await hand.attend("ada")
            assert await stage.ask("SELECT count(*) FROM events") == before

    async def test_a_long_call_is_left_alone(
        self, log: Log, stage: Stage, settings: Settings
    ) -> None:
        """C30: age is no reason; only a lock that nobody holds, or a lease that is over, is."""
        async with hired(settings) as holder, hired(settings) as other:
            assert await holder.locks.try_acquire("ada")
            await at_work(log)
            await stage.ask("UPDATE turns SET started_at = now() - interval '3 hours'")
            assert await other.sweep() == ()
            await stage.ask(
                "UPDATE turns t SET started_at = r.at FROM (SELECT recorded_at AS at FROM events"
                " WHERE type = 'turn.started') r"
            )
            await holder.locks.release("ada")
            assert await other.sweep() == ("ada",)

    @pytest.mark.parametrize("name", ["w", LONG_NAME])
    async def test_a_frozen_worker(
        self, log: Log, stage: Stage, settings: Settings, name: str
    ) -> None:
        """C22: its lease is over by the clock of the database; its locks are taken from it.

        However long its name is: Postgres keeps 63 characters of it.
        """
        await at_work(log)
        async with hired(settings, name=name, lease_s=0) as frozen, hired(settings) as other:
            assert await frozen.locks.try_acquire("ada")
            swept = await other.locks.sweep(30, 8)
            assert len(swept.frozen) == 1
            await stage.until_free()
            assert await other.sweep() == ("ada",)
            assert await stage.ask("SELECT count(*) FROM workers") == [(1,)]

    async def test_a_worker_whose_lease_was_deleted(
        self, log: Log, stage: Stage, settings: Settings
    ) -> None:
        """C27: it has no business with the agents it holds, and is told so itself."""
        await at_work(log)
        async with hired(settings) as pruned, hired(settings) as other:
            assert await pruned.locks.try_acquire("ada")
            await stage.ask("DELETE FROM workers WHERE id = %s", pruned.locks.worker_id)
            async with asyncio.timeout(10):
                while await other.sweep() != ("ada",):
                    await asyncio.sleep(0.05)
            assert not (await _swept_alive(pruned.locks))
            assert pruned.locks.lost.is_set()

    async def test_a_worker_of_the_same_name(self, settings: Settings) -> None:
        """C26, C27: names are made anew for every connection; one that is there is refused."""
        async with hired(settings, name="same"):
            with pytest.raises(Exception, match="workers_pkey"):
                async with hired(settings, name="same"):
                    pass

    async def test_an_unlock_of_what_was_not_held(self, settings: Settings) -> None:
        """C37: whoever is told so has lost its way, and gives up every flight."""
        async with hired(settings) as hand:
            await hand.locks.release("ada")
            assert hand.locks.lost.is_set()


class TestTheLockConnection:
    """It holds locks and nothing else."""

    async def test_nothing_is_left_locked(self, log: Log, stage: Stage, settings: Settings) -> None:
        """C37: after a turn no advisory lock is there, and the next turn starts."""
        await create(log, "ada")
        async with hired(settings) as hand:
            for content in ("one", "two"):
                await accept(log, "ada", content)
                await hand.attend("ada")
                assert await stage.ask("SELECT 1 FROM pg_locks WHERE locktype = 'advisory'") == []
        assert len(await stage.events(TurnEnded)) == 2
        assert len(await stage.events(FlightAcquired)) == 2

    async def test_it_holds_back_no_reader(self, stage: Stage, settings: Settings) -> None:
        """C18: while it holds an agent it has no transaction and no snapshot."""
        async with hired(settings) as hand:
            assert await hand.locks.try_acquire("ada")
            assert await stage.ask(
                "SELECT state, backend_xid, backend_xmin FROM pg_stat_activity WHERE pid = %s",
                hand.locks.pid,
            ) == [("idle", None, None)]

    async def test_a_transaction_that_is_left_open(self, log: Log) -> None:
        """C12, C18: Postgres cuts off a process that froze in the middle of one."""
        await create(log, "ada")
        async with log.locked("ada") as tx:
            cursor = await tx.connection.execute("SHOW idle_in_transaction_session_timeout")
            assert await cursor.fetchone() == ("10s",)


async def _swept_alive(locks: Any) -> bool:
    try:
        return bool((await locks.sweep(30, 8)).alive)
    except Exception:  # noqa: BLE001 -- its connection was ended
        return False
