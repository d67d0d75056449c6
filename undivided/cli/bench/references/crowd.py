"""Sixteen writers at once, over some processes: plain ones, or ours beside them.

    crowd.py plain|awaited|ours PROCESSES WRITERS DATABASE_URL

Forks once everything is imported; each process runs its share of the writers. Says `ready`;
answers each line, a number of seconds, with how many rows all writers together have written in
that time.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import time
from collections.abc import Awaitable, Callable
from typing import TextIO

import psycopg
import uvloop

from undivided.cli.bench import samples
from undivided.cli.bench.references.writer import AsyncWriter, Writer
from undivided.store.database import Database
from undivided.store.log import Log

Count = Callable[[float], int]
Write = Callable[[], Awaitable[None]]


def main(kind: str, processes: int, writers: int, url: str) -> None:
    """Fork, and pass on what is asked and answered until nobody asks."""
    make = {"plain": _plain, "awaited": _awaited, "ours": _ours}[kind]
    forks = [_forked(make, url, writers // processes) for _ in range(processes)]
    for _, told in forks:
        told.readline()
    _say("ready")
    for line in sys.stdin:
        for asked, _ in forks:
            asked.write(line)
            asked.flush()
        _say(sum(int(told.readline()) for _, told in forks))
    for asked, _ in forks:
        asked.close()


def _say(what: object) -> None:
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


def _forked(make: Callable[[str, int], Count], url: str, share: int) -> tuple[TextIO, TextIO]:
    """One process: where it is asked, and where it answers."""
    to_child, from_parent = os.pipe(), os.pipe()
    if os.fork() == 0:
        os.close(to_child[1])
        os.close(from_parent[0])
        os.dup2(to_child[0], 0)
        _serve(make(url, share), os.fdopen(to_child[0]), os.fdopen(from_parent[1], "w"))
        os._exit(0)
    os.close(to_child[0])
    os.close(from_parent[1])
    return os.fdopen(to_child[1], "w"), os.fdopen(from_parent[0])


def _serve(count: Count, asked: TextIO, told: TextIO) -> None:
    gc.freeze()  # as our processes do once they are there
    told.write("ready\n")
    told.flush()
    for line in asked:
        told.write(f"{count(float(line))}\n")
        told.flush()


def _plain(url: str, share: int) -> Count:
    if share != 1:
        raise ValueError("a plain writer has a process to itself")
    return Writer(url, samples.stored(samples.accepted("agt_reference"))).count


def _awaited(url: str, share: int) -> Count:
    stored = samples.stored(samples.accepted("agt_reference"))

    async def connected() -> Write:
        connection = await psycopg.AsyncConnection.connect(url, autocommit=True)
        return AsyncWriter(connection, stored).write

    return _together(connected, share)


def _ours(url: str, share: int) -> Count:
    log = Log(Database(url, share, "undivided-crowd"))

    async def connected() -> Write:
        await log.database.open()
        agent_id, outlet = await samples.new_agent(log), samples.deaf(log)
        return lambda: samples.accept_one(outlet, agent_id)

    return _together(connected, share)


def _together(connected: Callable[[], Awaitable[Write]], share: int) -> Count:
    """As many writers as `share` says, on one event loop."""
    loop = uvloop.new_event_loop()
    asyncio.set_event_loop(loop)

    async def begin() -> list[Write]:
        return [await connected() for _ in range(share)]

    writes = loop.run_until_complete(begin())

    async def one(write: Write, until: float) -> int:
        written = 0
        while time.perf_counter() < until:
            await write()
            written += 1
        return written

    async def all_of(seconds: float) -> int:
        until = time.perf_counter() + seconds
        return sum(await asyncio.gather(*(one(write, until) for write in writes)))

    return lambda seconds: loop.run_until_complete(all_of(seconds))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
