"""Rows of attention: what a yield point costs, and how long things wait under a mixed load."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from statistics import median

from msgspec.structs import replace

from undivided.cli.bench import samples
from undivided.cli.bench.children import until, workers
from undivided.cli.bench.measuring import Bench, in_turns, percentile
from undivided.cli.bench.rows import Row
from undivided.cli.bench.turning import outlet
from undivided.domain.events.items import Payload, Sender
from undivided.domain.mailbox import Accept
from undivided.domain.policy import JUDGE_OFF
from undivided.domain.recorded import agent_stream
from undivided.domain.stimuli import (
    A2A_MESSAGE,
    HEARTBEAT,
    HUMAN_CHAT,
    SYSTEM_EVENT,
    TASK_COMMENT,
)
from undivided.store.commands.accepting import accept_stimuli
from undivided.store.flights import Flight
from undivided.store.fresh import fresh_id
from undivided.store.log import Addition
from undivided.store.takeoff import take_off
from undivided.workers.judge import Judge
from undivided.workers.looking import Looking
from undivided.workers.model import Models
from undivided.workers.signals import Signals

QUEUED = 1_000
AGENTS = 8
PACE_S = 0.02
"""Between two stimuli of the mixed load: some fifty a second, for all agents together."""
MIX = (HUMAN_CHAT, A2A_MESSAGE, TASK_COMMENT, SYSTEM_EVENT, A2A_MESSAGE, TASK_COMMENT, HEARTBEAT)

_WAITED = """
SELECT i.source_type,
       extract(epoch FROM min(pg_xact_commit_timestamp(p.xmin))
                          - pg_xact_commit_timestamp(a.xmin)) * 1000
  FROM items i JOIN events a ON a.id = i.accepted_by::uuid
  JOIN events p ON p.stream = a.stream AND p.type = 'item.picked'
   AND p.data->>'item_id' = coalesce(i.merged_into, i.id)
 WHERE i.agent_id = ANY(%s)
 GROUP BY i.id, i.source_type, a.xmin"""


async def yielding(bench: Bench) -> list[Row]:
    """Looking up from a turn, with a thousand items waiting and with none."""
    bench.tell("a yield point")
    models = Models(bench.servers.settings.config, _nothing)
    looking = Looking(bench.log, Judge(bench.log, models))
    full, empty = await _at_work(bench, QUEUED), await _at_work(bench, 0)
    times = bench.of(200, 50)
    ours, theirs = await in_turns(
        bench.rounds, partial(_looks_up, looking, full, times),
        partial(_looks_up, looking, empty, times),
    )  # fmt: skip
    work = f"yield point with {QUEUED:,} queued items"
    return [
        Row(group="yield", work=work, unit="ms", ours=ours, theirs=theirs,
            reference="the same with an empty mailbox"),
        Row(group="yield", work=f"{work}, beyond an empty mailbox's", unit="ms",
            ours=max(0.0, ours - theirs), at_most=2),
    ]  # fmt: skip


async def _looks_up(looking: Looking, flight: Flight, times: int) -> float:
    """The median milliseconds of one look."""
    took: list[float] = []
    for _ in range(times):
        began = time.perf_counter()
        if await looking.up(flight, Signals(), step=1) is not None:
            raise RuntimeError("the turn of the benchmark was to go on")
        took.append((time.perf_counter() - began) * 1000)
    return median(took)


async def _at_work(bench: Bench, waiting: int) -> Flight:
    """A turn about a person's message, with so many other things waiting behind it."""
    agent_id = fresh_id("agt")
    created = samples.created(agent_id)
    policy = replace(created.policy, judge_model=JUDGE_OFF)
    await bench.log.append(
        [Addition(agent_stream(agent_id), 0, (replace(created, policy=policy),))], samples.META
    )
    way_out = samples.deaf(bench.log)
    await accept_stimuli(way_out, agent_id, [samples.stimulus()], samples.META)
    flight = await take_off(bench.log, agent_id, "wrk_bench")
    if flight is None:
        raise RuntimeError("the turn of the benchmark did not begin")
    for first in range(0, waiting, samples.BATCH):
        few = range(first, min(waiting, first + samples.BATCH))
        commands = [_stimulus(SYSTEM_EVENT, number) for number in few]
        await accept_stimuli(way_out, agent_id, commands, samples.META)
    return flight


async def attention(bench: Bench) -> list[Row]:
    """From acceptance to pick, for each type, while eight agents are sent all kinds of things."""
    bench.tell("time to attention")
    number = bench.of(600, 150)
    agent_ids = [await samples.new_agent(bench.log, "bench") for _ in range(AGENTS)]
    async with workers(bench), outlet(bench) as way_out:
        for n in range(number):
            command = _stimulus(MIX[n % len(MIX)], n // len(MIX))
            await accept_stimuli(way_out, agent_ids[n % AGENTS], [command], samples.META)
            await asyncio.sleep(PACE_S)
        await until(partial(_all_rest, bench, agent_ids))
    async with bench.database.connection() as connection:
        cursor = await connection.execute(_WAITED, (agent_ids,))
        found = [(str(kind), float(ms)) for kind, ms in await cursor.fetchall()]
    return [
        Row(group="attention", unit="ms", ours=percentile([ms for one, ms in found if one == kind],
                                                          percent),
            work=f"time to attention under a mixed load, {kind}, p{percent}")
        for kind in dict.fromkeys(MIX) for percent in (50, 99)
    ]  # fmt: skip


async def _all_rest(bench: Bench, agent_ids: list[str]) -> bool:
    async with bench.database.connection() as connection:
        cursor = await connection.execute(
            "SELECT bool_and(waiting = 0 AND attention_state = 'idle') FROM agents"
            " WHERE id = ANY(%s)",
            (agent_ids,),
        )
        row = await cursor.fetchone()
    return row is not None and bool(row[0])


def _stimulus(kind: str, number: int) -> Accept:
    """One of many: comments are about a few tasks, agents write in a few channels."""
    role = {HUMAN_CHAT: "user", A2A_MESSAGE: "agent", TASK_COMMENT: "user"}.get(kind, "system")
    return Accept(
        item_id=fresh_id("mbx"),
        source_type=kind,
        payload=Payload(
            samples.SAID,
            task_id=f"tsk_{number % 4}" if kind == TASK_COMMENT else None,
            extra={"channelKey": f"group:{number % 4}"} if kind == A2A_MESSAGE else {},
        ),
        sender=Sender("u-17", "Ines", role),  # type: ignore[arg-type]
    )


async def _nothing(name: str) -> bytes:
    raise LookupError(name)
