"""The order of the log is the order of each stream, whoever had to wait for whom.

A transaction gets its id with its first write. Were it to wait for a stream after that, others
would commit to the stream in the meantime under higher ids, and their events would stand behind
its own in the log although they came first.
"""

from __future__ import annotations

from tests.races.staging import Stage
from tests.support.lives import REFUSED, accept, answer, begin, create, live
from undivided.domain.events.items import NoticePosted
from undivided.store.log import Log


async def test_a_flight_that_queues_behind_a_producer(log: Log, stage: Stage) -> None:
    """C14, C15: the producer came first, so its transaction has the lower id."""
    await create(log, "ada")
    await accept(log, "ada", "one")
    flight = await begin(log, "ada")
    async with stage.holding("agent:ada"):
        producer = await stage.begin_waiting(accept(log, "ada", "two"))
        ending = await stage.begin_waiting(answer(log, flight, "so"))
    await producer
    assert await ending is not None


async def test_a_producer_that_queues_behind_a_flight(log: Log, stage: Stage) -> None:
    """C14, C15: and the other way round."""
    await create(log, "ada")
    await accept(log, "ada", "one")
    flight = await begin(log, "ada")
    async with stage.holding("agent:ada"):
        ending = await stage.begin_waiting(answer(log, flight, "so"))
        producer = await stage.begin_waiting(accept(log, "ada", "two"))
    assert await ending is None
    await producer


async def test_two_dead_letters_of_different_agents(log: Log, stage: Stage) -> None:
    """C14, C15: both are told to the same person, whose stream keeps its order."""
    for agent in ("ada", "bob"):
        await create(log, agent)
        await accept(log, agent, "one")
    ada, bob = await begin(log, "ada"), await begin(log, "bob")
    async with stage.holding("agent:ada"):
        first = await stage.begin_waiting(answer(log, ada, "", REFUSED))
        second = await stage.begin_waiting(answer(log, bob, "", REFUSED))
    await first
    await second
    assert [one.agent_id for one in await stage.events(NoticePosted)] == ["ada", "bob"]


async def test_a_dead_letter_that_nobody_saw_coming(log: Log) -> None:
    """The person's stream was not queued for in time: it is done over, in order."""
    await live(log, "ada")
