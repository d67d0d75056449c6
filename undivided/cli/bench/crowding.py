"""Rows of sixteen writers to sixteen agents: on the disk there is, and on a slower one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial

import psycopg

from undivided.cli.bench.children import talking
from undivided.cli.bench.measuring import Bench, in_turns
from undivided.cli.bench.rows import Row

WRITERS = "16"
CROWD = "undivided.cli.bench.references.crowd"
Ask = Callable[[str], Awaitable[str]]


async def crowd(bench: Bench) -> list[Row]:
    """Sixteen connections on either side.

    Ours in two processes, as a service runs; the reference in sixteen processes and in two
    asynchronous ones, of which the better counts.
    """
    bench.tell("16 writers")
    url, seconds = bench.servers.settings.database_url, bench.of(2, 1)
    async with (
        talking(bench, CROWD, "ours", "2", WRITERS, url) as ours,
        talking(bench, CROWD, "plain", WRITERS, WRITERS, url) as plain,
        talking(bench, CROWD, "awaited", "2", WRITERS, url) as awaited,
    ):
        sides = [partial(_rate, ask, seconds) for ask in (ours, plain, awaited)]
        fast = await in_turns(bench.rounds, *sides)
        bench.tell("16 writers, slow disk")
        async with slow_disk(bench.servers.owner_url):
            slow = await in_turns(bench.rounds, *sides)
    work = "accept, 16 writers to 16 agents"
    reference = "16 raw writers (psycopg, the same row, autocommit)"
    return [
        Row(group="crowd", work=work, unit="/s", ours=fast[0], theirs=max(fast[1:]),
            reference=reference, at_least=0.3),
        Row(group="crowd", work=f"{work}, with an emulated 1 ms fsync", unit="/s", ours=slow[0],
            theirs=max(slow[1:]), reference=reference, at_least=0.5),
    ]  # fmt: skip


async def _rate(ask: Ask, seconds: int) -> float:
    return int(await ask(str(seconds))) / seconds


@asynccontextmanager
async def slow_disk(owner_url: str) -> AsyncIterator[None]:
    """Every flush takes a millisecond longer, as on disks that are really far away."""
    await _configure(owner_url, "SET commit_delay = 1000", "SET commit_siblings = 0")
    try:
        yield
    finally:
        await _configure(owner_url, "RESET commit_delay", "RESET commit_siblings")


async def _configure(owner_url: str, *changes: str) -> None:
    async with await psycopg.AsyncConnection.connect(owner_url, autocommit=True) as connection:
        for change in changes:
            await connection.execute(f"ALTER SYSTEM {change}".encode())
        await connection.execute("SELECT pg_reload_conf()")
    await asyncio.sleep(0.2)  # until every backend has read it
