"""Rows of the worker: how soon a turn starts, and how many short ones fit into a second."""

from __future__ import annotations

import asyncio
import time
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime
from statistics import median
from typing import NamedTuple

from undivided.cli.bench import samples
from undivided.cli.bench.children import THREADS, child, frozen, until, workers
from undivided.cli.bench.measuring import Bench, in_turns
from undivided.cli.bench.references.actor import BEGUN, Reference
from undivided.cli.bench.rows import Row
from undivided.domain.recorded import agent_stream
from undivided.store.commands.accepting import accept_stimuli
from undivided.store.commands.outlet import Outlet
from undivided.store.doorbell import Doorbell
from undivided.store.hints import Hints

ACTOR = "undivided.cli.bench.references.actor"
PAUSE_S = 0.15
"""Between two stimuli: long enough for every process to fall asleep again."""


async def wake(bench: Bench) -> list[Row]:
    """From a committed stimulus to a started turn, with nobody at work."""
    bench.tell("from stimulus to turn")
    times = bench.of(20, 8)
    async with both(bench) as (reference, crew), outlet(bench) as way_out:
        ours, theirs = await in_turns(
            bench.rounds,
            lambda: _awake_ours(bench, way_out, crew, times),
            lambda: _awake_theirs(reference, times),
        )
    return [
        Row(group="wake", work="stimulus committed → turn started, idle, p50", unit="ms", ours=ours,
            theirs=theirs, at_most=2.5,
            reference="bare Dramatiq actor with a 5 ms poll, enqueued → started"),
    ]  # fmt: skip


async def turns(bench: Bench) -> list[Row]:
    """Short turns (one scripted response each) with two worker processes."""
    bench.tell("short turns")
    times = bench.of(600, 200)
    async with both(bench) as (reference, crew), outlet(bench) as way_out:
        ours, theirs = await in_turns(
            bench.rounds,
            lambda: _turns_ours(bench, way_out, crew, times),
            lambda: _turns_theirs(bench, reference, crew, times),
        )
    work = "short turns (one scripted model response), 2 worker processes"
    return [
        Row(group="turns", work=work, unit="/s", ours=ours, theirs=theirs, at_least=0.5,
            reference="bare Dramatiq actor with the same number of commits (2)"),
        Row(group="turns", work=f"{work}, as they are", unit="/s", ours=ours, at_least=300),
    ]  # fmt: skip


class Crew(NamedTuple):
    """The worker processes of either side."""

    ours: tuple[Process, ...]
    theirs: tuple[Process, ...]


@asynccontextmanager
async def both(bench: Bench) -> AsyncIterator[tuple[Reference, Crew]]:
    """Two workers of ours, and two of the reference that are frozen unless they are measured."""
    settings = bench.servers.settings
    async with AsyncExitStack() as stack:
        ours = await stack.enter_async_context(workers(bench))
        actors = tuple(
            [
                await stack.enter_async_context(child(bench, "actor", ACTOR, str(THREADS)))
                for _ in range(2)
            ]
        )
        reference = Reference(settings.redis_url, settings.database_url)
        await asyncio.to_thread(_begun, reference, 4)  # they are there and have warmed up
        yield reference, Crew(tuple(ours), actors)


@asynccontextmanager
async def outlet(bench: Bench) -> AsyncIterator[Outlet]:
    """The way by which the API accepts: log, doorbell, hints."""
    settings = bench.servers.settings
    doorbell = Doorbell(settings.redis_url, settings.namespace)
    hints = Hints(settings.redis_url, settings.namespace)
    await doorbell.start()
    await hints.start()
    try:
        yield Outlet(bench.log, doorbell, hints)
    finally:
        await hints.close()
        await doorbell.close()


async def _awake_ours(bench: Bench, way_out: Outlet, crew: Crew, times: int) -> float:
    agent_ids = [await samples.new_agent(bench.log, "bench") for _ in range(times)]
    with frozen(*crew.theirs):
        await asyncio.sleep(PAUSE_S)
        for agent_id in agent_ids:
            await accept_stimuli(way_out, agent_id, [samples.stimulus()], samples.META)
            await asyncio.sleep(PAUSE_S)
    await ended(bench, agent_ids)
    return median([await _waited_ms(bench, agent_id) for agent_id in agent_ids])


async def _waited_ms(bench: Bench, agent_id: str) -> float:
    """Between two commits, as Postgres itself has timed them."""
    async with bench.database.connection() as connection:
        cursor = await connection.execute(
            "SELECT type, pg_xact_commit_timestamp(xmin) FROM events"
            " WHERE stream = %s AND type IN ('item.accepted', 'item.picked')",
            (agent_stream(agent_id),),
        )
        at: dict[str, datetime] = dict(await cursor.fetchall())
    return (at["item.picked"] - at["item.accepted"]).total_seconds() * 1000


async def _awake_theirs(reference: Reference, times: int) -> float:
    return median(await asyncio.to_thread(_begun, reference, times))


def _begun(reference: Reference, times: int) -> list[float]:
    """Milliseconds from each message to the start of its actor."""
    waited: list[float] = []
    client = reference.broker.client
    for _ in range(times):
        time.sleep(PAUSE_S)
        sent = time.time()
        reference.begun.send()
        answer = client.blpop(BEGUN, 30)
        if answer is None:
            raise TimeoutError("the reference's workers do not answer")
        waited.append((float(answer[1]) - sent) * 1000)
    return waited


async def _turns_ours(bench: Bench, way_out: Outlet, crew: Crew, times: int) -> float:
    with frozen(*crew.theirs):
        with frozen(*crew.ours):  # else the sweep begins while there are not yet all of them
            agent_ids = await samples.new_agents(bench.log, times, samples.SAID, "bench")
            way_out.doorbell.ring(agent_ids)
            await asyncio.sleep(0.05)
        await ended(bench, agent_ids)
    async with bench.database.connection() as connection:
        cursor = await connection.execute(
            "SELECT max(e.recorded_at) - min(e.recorded_at) FROM events e JOIN turns t"
            " ON e.tenant = t.tenant AND e.stream = 'session:' || t.session_id"
            " WHERE t.agent_id = ANY(%s)",
            (agent_ids,),
        )
        (took,) = await cursor.fetchone() or (None,)
    return times / took.total_seconds() if took is not None else 0.0


async def ended(bench: Bench, agent_ids: list[str], each: int = 1) -> None:
    """Wait until these agents have handled as many items `each`."""

    async def all_ended() -> bool:
        async with bench.database.connection() as connection:
            cursor = await connection.execute(
                "SELECT count(*) FROM items WHERE agent_id = ANY(%s) AND status = 'completed'",
                (agent_ids,),
            )
            row = await cursor.fetchone()
        return row is not None and row[0] == each * len(agent_ids)

    await until(all_ended)


async def _turns_theirs(bench: Bench, reference: Reference, crew: Crew, times: int) -> float:
    began = await bench.database.hear_clock()
    with frozen(*crew.theirs):
        await asyncio.to_thread(lambda: [reference.short_turn.send() for _ in range(times)])

    async def written() -> list[datetime]:
        async with bench.database.connection() as connection:
            cursor = await connection.execute(
                "SELECT recorded_at FROM events WHERE txid = 0 AND recorded_at >= %s"
                " ORDER BY recorded_at",
                (began,),
            )
            return [row[0] for row in await cursor.fetchall()]

    async def all_written() -> bool:
        return len(await written()) == 2 * times

    await until(all_written)
    at = await written()
    return times / (at[-1] - at[0]).total_seconds()
