"""The row of dying: a worker is killed in mid-turn, and another goes on with its turn."""

from __future__ import annotations

import os
import signal
from datetime import datetime

from undivided.cli.bench import samples
from undivided.cli.bench.children import begin_worker, ready, until, workers
from undivided.cli.bench.measuring import Bench, percentile
from undivided.cli.bench.rows import Row
from undivided.cli.bench.turning import ended, outlet

EACH = 4
"""Turns at work with every kill; the victim's own are measured."""


async def orphans(bench: Bench) -> list[Row]:
    """From `kill -9` to the commit by which somebody else has taken up the turn."""
    kills = bench.of(20, 3)
    waited: list[float] = []
    async with workers(bench) as crew, outlet(bench) as way_out:
        for number in range(kills):
            bench.tell(f"kill a worker in mid-turn, {number + 1} of {kills}")
            agent_ids = await samples.new_agents(bench.log, EACH, "think", "bench")
            way_out.doorbell.ring(agent_ids)
            held = await _holders(bench, agent_ids)
            victim = crew[number % len(crew)]
            orphaned = [one for one, worker in held.items() if f".{victim.pid}." in f".{worker}."]
            if not orphaned:
                continue
            at = await bench.database.hear_clock()
            os.kill(victim.pid, signal.SIGKILL)
            await victim.wait()
            crew[number % len(crew)] = await begin_worker(bench)
            waited += [await _taken_up_s(bench, one, at) for one in orphaned]
            await ready(bench, crew)
            await ended(bench, agent_ids)  # whoever is full could not take up more
    work = f"orphan after kill -9 of a worker: its turn goes on, p95 of {len(waited)}"
    return [
        Row(group="orphan", work=work, unit="s", ours=percentile(waited, 95), at_most=2),
    ]


async def _holders(bench: Bench, agent_ids: list[str]) -> dict[str, str]:
    """Which worker holds each agent, once each is held."""
    held: dict[str, str] = {}

    async def all_held() -> bool:
        async with bench.database.connection() as connection:
            cursor = await connection.execute(
                "SELECT id, worker FROM flights WHERE id = ANY(%s) AND held", (agent_ids,)
            )
            held.update(await cursor.fetchall())
        return len(held) == len(agent_ids)

    await until(all_held)
    return held


async def _taken_up_s(bench: Bench, agent_id: str, at: datetime) -> float:
    """Seconds from `at` to the commit of the next flight, by the clock of Postgres."""
    found: list[datetime] = []

    async def taken() -> bool:
        async with bench.database.connection() as connection:
            cursor = await connection.execute(
                "SELECT pg_xact_commit_timestamp(xmin) FROM events"
                " WHERE stream = 'agent:' || %s AND type = 'focus.regained'"
                " ORDER BY version LIMIT 1",
                (agent_id,),
            )
            row = await cursor.fetchone()
        if row is not None:
            found.append(row[0])
        return row is not None

    await until(taken)
    return (found[0] - at).total_seconds()
