"""Rows of doing nothing: ten thousand turns that wait, and a stack that nobody uses."""

from __future__ import annotations

import asyncio
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import psycopg
from msgspec import Struct
from redis.asyncio import Redis

from undivided.cli.bench import samples
from undivided.cli.bench.children import child, serving, until, workers
from undivided.cli.bench.measuring import Bench
from undivided.cli.bench.processes import cpu_s, family, memory_mb, threads
from undivided.cli.bench.rows import Row
from undivided.cli.bench.turning import outlet
from undivided.cli.stack.folder import free_port
from undivided.store.doorbell import rings_key

WARM = 200
"""Turns that each worker has behind it before its memory is looked at."""


class Held(Struct, frozen=True):
    """What a stack holds on to; a connection that waits in a pool is not in use."""

    memory_mb: float
    threads: int
    connections: int
    messages: int


async def sleeping(bench: Bench) -> list[Row]:
    """Many suspended turns, and what the workers that suspended them still hold."""
    turns = bench.of(10_000, 500)
    async with workers(bench) as crew, outlet(bench) as way_out:
        bench.tell("warm up for suspended turns")
        ring = way_out.doorbell.ring
        ring(await samples.new_agents(bench.log, WARM, "rest", "bench"))
        await _suspended(bench, WARM)
        before = await _held(bench, crew)
        bench.tell(f"suspend {turns:,} turns")
        for first in range(0, turns, WARM):
            ring(await samples.new_agents(bench.log, WARM, "rest", "bench"))
            await _suspended(bench, WARM + first + WARM)
        after = await _held(bench, crew)
    work = f"{turns:,} suspended turns: "
    return [
        Row(group="sleeping", work=f"{work}memory of the workers, more than before", unit="MB",
            ours=max(0.0, after.memory_mb - before.memory_mb), at_most=20),
        Row(group="sleeping", work=f"{work}connections in use more than before", unit="",
            ours=max(0, after.connections - before.connections), at_most=0),
        Row(group="sleeping", work=f"{work}threads more than before", unit="",
            ours=max(0, after.threads - before.threads), at_most=0),
        Row(group="sleeping", work=f"{work}broker messages", unit="", ours=after.messages,
            at_most=0),
    ]  # fmt: skip


async def _suspended(bench: Bench, count: int) -> None:
    async def all_wait() -> bool:
        async with bench.database.connection() as connection:
            cursor = await connection.execute(
                "SELECT count(*) FROM turns WHERE status = 'suspended'"
            )
            row = await cursor.fetchone()
        return row is not None and row[0] >= count

    await until(all_wait)


async def _held(bench: Bench, crew: list[Process]) -> Held:
    """Once whatever was passing through has passed."""
    await asyncio.sleep(2)
    settings = bench.servers.settings
    async with Redis.from_url(settings.redis_url) as redis:
        messages = await redis.zcard(rings_key(settings.namespace))
    async with bench.database.connection() as connection:
        cursor = await connection.execute(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE application_name LIKE 'undivided-worker%' AND state <> 'idle'"
        )
        row = await cursor.fetchone()
    return Held(
        sum(memory_mb(process.pid) for process in crew),
        sum(threads(process.pid) for process in crew),
        int(row[0]) if row else 0,
        int(messages),
    )


async def idle(bench: Bench) -> list[Row]:
    """The whole stack with nothing to do."""
    bench.tell("idle stack")
    seconds = bench.of(20, 5)
    async with _whole(bench) as stack:
        await asyncio.sleep(3)  # what starting up leaves behind is over
        async with logging_statements(bench) as statements, commands(bench) as asked:
            pids = [one for pid in (*stack, *bench.servers.pids) for one in family(pid)]
            used, said, ran = cpu_s(pids), await asked(), statements()
            await asyncio.sleep(seconds)
            used, said, ran = cpu_s(pids) - used, await asked() - said, statements() - ran
    work = "idle stack (API, 2 workers, clock, Postgres, Valkey): "
    return [
        Row(group="idle", work=f"{work}processor", unit="% of a core", ours=used / seconds * 100,
            at_most=3),
        Row(group="idle", work=f"{work}Postgres statements", unit="/s", ours=ran / seconds,
            at_most=20),
        Row(group="idle", work=f"{work}Redis commands", unit="/s", ours=said / seconds,
            at_most=20),
    ]  # fmt: skip


@asynccontextmanager
async def _whole(bench: Bench) -> AsyncIterator[list[int]]:
    """All that `undivided up` runs; the process ids."""
    port = free_port()
    async with (
        workers(bench) as crew,
        child(bench, "clock", "undivided", "clock") as clock,
        child(bench, "api", "undivided", "api", "--port", str(port)) as api,
        serving(f"http://127.0.0.1:{port}/readyz", api),
    ):
        yield [clock.pid, api.pid, *(process.pid for process in crew)]


@asynccontextmanager
async def commands(bench: Bench) -> AsyncIterator[Callable[[], Awaitable[int]]]:
    """A function that answers how many commands Valkey has processed, its own left out."""
    asked = 0
    async with Redis.from_url(bench.servers.settings.redis_url) as redis:

        async def count() -> int:
            nonlocal asked
            asked += 1
            info = await redis.info("stats")
            return int(info["total_commands_processed"]) - asked

        yield count


@asynccontextmanager
async def logging_statements(bench: Bench) -> AsyncIterator[Callable[[], int]]:
    """A function that answers how many statements Postgres has run, by its log."""
    log = bench.servers.folder / "postgres.log"

    def count() -> int:
        text = log.read_text(encoding="utf-8", errors="replace")
        return text.count("LOG:  statement:") + text.count("LOG:  execute ")

    await _log(bench, "SET log_statement = 'all'")
    try:
        yield count
    finally:
        await _log(bench, "RESET log_statement")


async def _log(bench: Bench, change: str) -> None:
    async with await psycopg.AsyncConnection.connect(
        bench.servers.owner_url, autocommit=True
    ) as connection:
        await connection.execute(f"ALTER SYSTEM {change}".encode())
        await connection.execute("SELECT pg_reload_conf()")
    await asyncio.sleep(1)  # until every backend has read it
