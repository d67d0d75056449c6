"""Stops that race what they are meant to stop."""

from __future__ import annotations

import asyncio

from tests.races.hand import hired
from tests.races.staging import Stage
from tests.support.lives import BUSY, BY, accept, answer, begin, create, response
from undivided.domain.agents import request_stop
from undivided.domain.events.sessions import ToolCallFinished, ToolCallStarted, TurnEnded
from undivided.domain.outcomes import Cancelled, Completed
from undivided.store import landing
from undivided.store.log import Log
from undivided.store.settings import Settings


async def stop(log: Log, agent_id: str, by: str = "ada") -> None:
    async with log.locked(agent_id) as tx:
        await tx.append([tx.addition(*request_stop(tx.agent, by))], BY)


async def test_a_stop_that_comes_while_its_turn_is_being_ended(
    log: Log, stage: Stage, settings: Settings
) -> None:
    """C60: it is in time for its own turn, and is not taken for one of the next."""
    await create(log, "ada")
    await accept(log, "ada", "zero", "one", "two")
    async with hired(settings) as hand:
        at_work = await hand.at_the_model("ada")
        await stop(log, "ada")
        async with stage.holding("agent:ada"):
            before = await stage.waiting()
            hand.model.gate.set()
            await stage.more_wait(before)
            ((turn_id,),) = await stage.ask("SELECT attention->>'turn_id' FROM agents")
            hand.attendant.stop_turn(turn_id)
        await at_work
        assert hand.model.inputs() == ["zero", "one", "two"]
    assert [one.outcome for one in await stage.events(TurnEnded)] == [
        Cancelled("ada"),
        Completed("so"),
        Completed("so"),
    ]


async def test_a_stop_that_only_the_sweep_tells(log: Log, stage: Stage, settings: Settings) -> None:
    """C60, C84: with Redis away, the sweep names the turn."""
    await create(log, "ada")
    await accept(log, "ada", "one")
    async with hired(settings) as hand:
        at_work = await hand.at_the_model("ada")
        assert (await hand.locks.sweep(30, 8)).stops == ()
        await stop(log, "ada")
        (turn_id,) = (await hand.locks.sweep(30, 8)).stops
        hand.attendant.stop_turn(turn_id)
        await at_work
    assert [one.outcome for one in await stage.events(TurnEnded)] == [Cancelled("ada")]
    assert await stage.ask("SELECT status FROM items") == [("cancelled",)]


async def test_a_stop_in_a_tool(log: Log, stage: Stage, settings: Settings) -> None:
    """Every call has its result: the one that ran, and the one that never did."""
    await create(log, "ada")
    await accept(log, "ada", "one")
    async with hired(settings) as hand:
        hand.model.calls = [[("test_sleep", {"seconds": 600}), ("test_return", {"value": "x"})]]
        at_work = asyncio.create_task(hand.attend("ada"))
        async with asyncio.timeout(10):
            while not await stage.events(ToolCallStarted):
                await asyncio.sleep(0.01)
        await stop(log, "ada")
        (turn_id,) = (await hand.locks.sweep(30, 8)).stops
        hand.attendant.stop_turn(turn_id)
        await at_work
    assert [one.resolution for one in await stage.events(ToolCallFinished)] == [
        "interrupted",
        "skipped",
    ]
    assert [one.outcome for one in await stage.events(TurnEnded)] == [Cancelled("ada")]


async def test_a_stop_that_races_a_failure(log: Log, stage: Stage) -> None:
    """C60: whoever said stop does not want another attempt."""
    await create(log, "ada")
    await accept(log, "ada", "one")
    flight = await begin(log, "ada")
    await stop(log, "ada")
    assert await answer(log, flight, "", BUSY) is None
    assert await stage.ask("SELECT status FROM items") == [("cancelled",)]


async def test_a_stop_that_its_worker_did_not_live_to_see(
    log: Log, stage: Stage, settings: Settings
) -> None:
    """Whoever finds the orphan stops it, and asks no model."""
    await create(log, "ada")
    await accept(log, "ada", "one")
    await begin(log, "ada")
    await stop(log, "ada")
    async with hired(settings) as hand:
        assert await hand.sweep() == ("ada",)
        await hand.attend("ada")
        assert hand.model.asked == []
    assert await stage.ask("SELECT status FROM items") == [("cancelled",)]


async def test_a_stop_before_a_tool_would_run_again(
    log: Log, stage: Stage, settings: Settings
) -> None:
    """Its effect would allow that, and nobody wants it any more."""
    await create(log, "ada")
    await accept(log, "ada", "one")
    flight = await begin(log, "ada")
    await landing.record(log, flight, response(flight, "", "test_return"))
    call = flight.state.open[0].call
    await landing.record(
        log, flight,
        ToolCallStarted(
            turn_id=flight.turn.id, call_id=call.id, tool=call.tool, args=call.args,
            effect="pure", idempotency_key=call.id, epoch=flight.epoch,
        ),
    )  # fmt: skip
    await stop(log, "ada")
    async with hired(settings) as hand:
        await hand.attend("ada")
        assert hand.model.asked == []
    assert [one.resolution for one in await stage.events(ToolCallFinished)] == ["interrupted"]


async def test_a_stop_after_the_end(log: Log) -> None:
    """C60: there is nothing to stop, and nothing is recorded."""
    await create(log, "ada")
    await accept(log, "ada", "one")
    assert await answer(log, await begin(log, "ada"), "so") is None
    async with log.locked("ada") as tx:
        assert request_stop(tx.agent, "ada") == ()
