"""Rows about history: what folding it costs, and that having it costs nothing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from undivided.cli.bench import samples
from undivided.cli.bench.measuring import Bench, in_turns, rate
from undivided.cli.bench.past import long_lived
from undivided.cli.bench.references.folding import fold_rate
from undivided.cli.bench.rows import Row
from undivided.domain.recorded import Recorded, agent_stream
from undivided.projections import agents
from undivided.projections.table import BY_TABLE, Rows, fold
from undivided.store.log_pages import pieces_of_stream

_TOUCHING = BY_TABLE["agents"].events


async def folding(bench: Bench) -> list[Row]:
    """A stream from Postgres into the rows that it makes."""
    bench.tell("fold history")
    events = bench.of(100_000, 20_000)
    stream = agent_stream(await long_lived(bench, events))
    url = bench.servers.settings.database_url
    one, every, theirs = await in_turns(
        bench.rounds,
        lambda: _folded(bench, stream, events, _agent_alone),
        lambda: _folded(bench, stream, events, fold),
        lambda: asyncio.to_thread(fold_rate, url, stream, events),
    )
    return [
        Row(group="fold", work="fold history from Postgres into the agent's row", unit="/s",
            ours=one, theirs=theirs, at_least=0.6,
            reference="psycopg cursor, msgspec, one frozen struct, the same events"),
        Row(group="fold", work="the same, into every row that it makes (2.4 an event)", unit="/s",
            ours=every),
    ]  # fmt: skip


async def behind(bench: Bench) -> list[Row]:
    """Accepting with a long history behind the agent, and with a short one."""
    events = bench.of(1_000_000, 100_000)
    bench.tell(f"make {events:,} events")
    old, young = await long_lived(bench, events), await long_lived(bench, 10)
    bench.tell(f"accept with {events:,} events behind")
    times = bench.of(400, 150)
    ours, theirs = await in_turns(
        bench.rounds, lambda: _accept_ms(bench, old, times), lambda: _accept_ms(bench, young, times)
    )
    return [
        Row(group="behind", work=f"accept with {events:,} events behind the agent", unit="ms",
            ours=ours, theirs=theirs, reference="accept with 10 behind it", at_most=1.2),
    ]  # fmt: skip


async def _accept_ms(bench: Bench, agent_id: str, times: int) -> float:
    outlet = samples.deaf(bench.log)

    async def accept(_number: int) -> None:
        bench.log.memory.forget()  # what is measured is reading the agent
        await samples.accept_one(outlet, agent_id)

    return 1000 / await rate(times, accept)


def _agent_alone(rows: Rows, history: list[Recorded]) -> None:
    """One reducer of ours over an agent's stream."""
    place = ("agents", "")
    row = rows.get(place)
    for recorded in history:
        if type(recorded.event) in _TOUCHING:
            row = agents.reduce(row, recorded)
    rows[place] = row


async def _folded(
    bench: Bench, stream: str, events: int, take: Callable[[Rows, list[Recorded]], object]
) -> float:
    rows: Rows = {}
    seen = 0
    began = time.perf_counter()
    async with bench.database.connection() as connection:
        async for piece in pieces_of_stream(connection, bench.database.tenant, stream):
            take(rows, [kept.placed.recorded for kept in piece])
            seen += len(piece)
    if seen < events:
        raise RuntimeError(f"{seen} of {events} events were folded")
    return seen / (time.perf_counter() - began)
