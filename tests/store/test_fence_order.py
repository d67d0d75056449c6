"""The order of the log and the order of epochs are one: no step stands after a newer flight."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.lives import BY, REFUSED, accept, answer, begin, create, log_at, response
from tests.support.servers import Database
from tests.support.waiting import waits_for_lock
from undivided.domain.errors import Corrupt, StaleFlight
from undivided.domain.events.flights import FlightAcquired
from undivided.domain.memory import NoteMemory
from undivided.store import acting, landing
from undivided.store.checking import check
from undivided.store.flights import QUEUE_SEEN, Flight
from undivided.store.log import Log


async def test_a_step_that_meets_a_take_over_comes_before_it_or_not_at_all(
    database: Database,
) -> None:
    """A transaction gets its id with its first lock, long before it commits.

    Were the epoch raised in a transaction whose id is below that of a step which committed
    first, the step would stand in the log after the flight that fenced it.
    """
    async with log_at(database.app_url) as log:
        await create(log, "ada")
        await accept(log, "ada", "hello")
        flight = await begin(log, "ada")
        async with log.locked("ada", QUEUE_SEEN) as tx:
            late = asyncio.create_task(landing.record(log, flight, response(flight, "late")))
            await waits_for_lock(database.owner_url, "undivided")
            acquired = FlightAcquired(agent_id="ada", epoch=2, worker="wrk_2", taken_from=1)
            await tx.append([tx.addition(acquired)], BY)
        with pytest.raises(StaleFlight):
            await late
    assert (await check(database.app_url)).wrong == []


async def test_a_note_that_meets_a_take_over_does_not_stand_in_its_way(
    database: Database,
) -> None:
    """Both lock the flight first and the mailbox second: neither can hold what the other needs."""
    async with log_at(database.app_url) as log:
        await create(log, "ada")
        await accept(log, "ada", "hello")
        flight = await begin(log, "ada")
        await landing.record(log, flight, response(flight, "", "note"))
        (call,) = flight.state.open
        async with log.locked("ada", QUEUE_SEEN) as tx:
            noting = acting.act(log, flight, call.call, NoteMemory("key", "content"))
            late = asyncio.create_task(noting)
            await waits_for_lock(database.owner_url, "undivided")
            acquired = FlightAcquired(agent_id="ada", epoch=2, worker="wrk_2", taken_from=1)
            await tx.append([tx.addition(acquired)], BY)
        with pytest.raises(StaleFlight):
            await late
    assert (await check(database.app_url)).wrong == []


async def test_what_many_tell_one_person_stands_in_the_order_of_its_versions(
    database: Database,
) -> None:
    """Several agents write to one stream, each from within a transaction about itself."""
    agents = [f"agent-{n}" for n in range(6)]

    async def give_up_on_everything(log: Log, agent_id: str) -> None:
        await create(log, agent_id)
        await accept(log, agent_id, *(f"message {n}" for n in range(6)))
        flight: Flight | None = await begin(log, agent_id)
        while flight is not None:
            flight = await answer(log, flight, "", REFUSED)

    async with log_at(database.app_url) as log:
        await asyncio.gather(*(give_up_on_everything(log, agent_id) for agent_id in agents))
    assert (await check(database.app_url)).wrong == []


async def test_a_shared_stream_must_be_named_when_the_transaction_begins(
    database: Database,
) -> None:
    async with log_at(database.app_url) as log:
        await create(log, "ada")
        async with log.locked("ada") as tx:
            with pytest.raises(Corrupt, match="was not named"):
                await tx.locked_version("user:owner")
