"""Rows of one writer: append, accept, and one step of a turn."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from functools import partial

import psycopg

from undivided.cli.bench import samples
from undivided.cli.bench.measuring import Bench, in_turns, rate
from undivided.cli.bench.references.writer import AsyncWriter, Writer
from undivided.cli.bench.rows import Row
from undivided.domain.events.sessions import SessionOpened
from undivided.domain.mailbox import accept
from undivided.domain.recorded import session_stream
from undivided.store.fresh import fresh_id
from undivided.store.landing import record
from undivided.store.log import Addition
from undivided.store.takeoff import take_off

PLAIN = "psycopg, the same row, autocommit"


async def append(bench: Bench) -> list[Row]:
    """One event with lock and version check, from one writer."""
    bench.tell("append one event")
    event = samples.response(fresh_id("trn"), 0)
    times = bench.of(600, 200)
    session_id = fresh_id("ses")
    opened = SessionOpened(session_id=session_id, agent_id="agt_bench")
    stream, version = session_stream(session_id), 1
    await bench.log.append([Addition(stream, 0, (opened,))], samples.META)

    async def once(_number: int) -> None:
        nonlocal version
        await bench.log.append([Addition(stream, version, (event,))], samples.META)
        version += 1

    writer = Writer(bench.servers.settings.database_url, samples.stored(event))
    async with await psycopg.AsyncConnection.connect(
        bench.servers.settings.database_url, autocommit=True
    ) as connection:
        asynchronous = AsyncWriter(connection, samples.stored(event))
        ours, theirs, awaited = await in_turns(
            bench.rounds,
            lambda: rate(times, once),
            partial(_rate_of, writer, times),
            lambda: rate(times, lambda _: asynchronous.write()),
        )
    writer.close()
    work = "append one event with lock and version check, one writer"
    return [
        Row(group="append", work=work, unit="/s", ours=ours, reference=PLAIN, theirs=theirs,
            at_least=0.75),
        Row(group="append", work="the same, against asyncio", unit="/s", ours=ours,
            reference="psycopg's asyncio connection, the same row, autocommit", theirs=awaited),
    ]  # fmt: skip


async def accepting(bench: Bench) -> list[Row]:
    """One stimulus in process, from one writer: to one agent, and each to another."""
    bench.tell("accept a stimulus")
    log, outlet, times = bench.log, samples.deaf(bench.log), bench.of(500, 150)
    agent_id = await samples.new_agent(log)
    agent_ids = [await samples.new_agent(log) for _ in range(times)]
    stored = samples.stored(samples.accepted(agent_id))
    writer = Writer(bench.servers.settings.database_url, stored)

    async def to_strangers() -> float:
        log.memory.forget()
        return await rate(times, lambda n: samples.accept_one(outlet, agent_ids[n]))

    ours, strangers, theirs = await in_turns(
        bench.rounds,
        lambda: rate(times, lambda _: samples.accept_one(outlet, agent_id)),
        to_strangers,
        partial(_rate_of, writer, times),
    )
    writer.close()
    work = "accept a stimulus in process (decide, append, fold, commit), one writer"
    return [
        Row(group="accept", unit="/s", ours=ours, reference=PLAIN, theirs=theirs, at_least=0.3,
            work=work),
        Row(group="accept", unit="/s", ours=strangers, reference=PLAIN, theirs=theirs,
            at_least=0.3, work="the same, each to an agent that is not remembered"),
    ]  # fmt: skip


async def stepping(bench: Bench) -> list[Row]:
    """One recorded step, in the name of a flight."""
    bench.tell("one recorded step")
    log, times = bench.log, bench.of(400, 120)
    agent_id = await samples.new_agent(log)
    await samples.accept_one(samples.deaf(log), agent_id)
    flight = await take_off(log, agent_id, "bench")
    if flight is None:
        raise RuntimeError("nothing was due for an agent with a waiting item")
    fresh_state = flight.state
    event = samples.response(flight.turn.id, 0, flight.epoch)
    writer = Writer(bench.servers.settings.database_url, samples.stored(event))

    async def step(number: int) -> None:
        if number % 20 == 0:  # no turn has hundreds of responses
            flight.state = fresh_state
        await record(log, flight, event)

    ours, theirs = await in_turns(
        bench.rounds, lambda: _time_of(times, step), partial(_time_of_writer, writer, times)
    )
    writer.close()
    return [
        Row(group="step", work="one recorded step of a turn", unit="ms", ours=ours, theirs=theirs,
            reference="psycopg, one row in its own transaction", at_most=4),
    ]  # fmt: skip


async def deciding(bench: Bench) -> list[Row]:
    """What accepting costs without any I/O."""
    bench.tell("decide")
    view = await bench.log.view(await samples.new_agent(bench.log))
    if view.agent is None:
        raise RuntimeError("the agent that was just created is not there")
    agent, command, times = view.agent, samples.stimulus(), bench.of(20_000, 5_000)

    async def decide() -> float:
        began = time.perf_counter()
        for _ in range(times):
            accept(agent, (command,))
        return (time.perf_counter() - began) / times * 1e6

    (ours,) = await in_turns(bench.rounds, decide)
    return [Row(group="deciding", work="decide about one stimulus, pure", unit="µs", ours=ours)]


async def _rate_of(writer: Writer, times: int) -> float:
    return writer.rate(times)


async def _time_of_writer(writer: Writer, times: int) -> float:
    return 1000 / writer.rate(times)


async def _time_of(times: int, work: Callable[[int], Awaitable[object]]) -> float:
    return 1000 / await rate(times, work)
