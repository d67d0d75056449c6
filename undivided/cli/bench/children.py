"""Child processes of a benchmark: the service's own parts, and the references that need one."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

import httpx

from undivided.cli.bench.measuring import Bench
from undivided.cli.stack.spawn import Spawned, end, launched, spawn

PATIENCE_S = 60.0
THREADS = 8
"""Turns that one worker process does at once; the default of `undivided worker`."""


@asynccontextmanager
async def child(bench: Bench, name: str, *arguments: str) -> AsyncIterator[Process]:
    """A Python process with the run's environment, ended on leaving."""
    servers = bench.servers
    process = await spawn(
        Spawned(
            command=(sys.executable, "-m", *arguments),
            env=servers.environ,
            log=servers.folder / f"{name}.log",
        )
    )
    try:
        yield process
    finally:
        await end(process, signal.SIGTERM, 10)


@asynccontextmanager
async def workers(bench: Bench, count: int = 2) -> AsyncIterator[list[Process]]:
    """Worker processes that are ready for work."""
    processes: list[Process] = []
    try:
        while len(processes) < count:
            processes.append(await begin_worker(bench))
        await ready(bench, processes)
        yield processes
    finally:
        await asyncio.gather(*(end(process, signal.SIGTERM, 25) for process in processes))


async def begin_worker(bench: Bench) -> Process:
    """One more worker process, which need not be ready yet; whoever asks ends it."""
    servers = bench.servers
    return await spawn(
        Spawned(
            command=(sys.executable, "-m", "undivided", "worker", "--threads", str(THREADS)),
            env=servers.environ,
            log=servers.folder / "worker.log",
        )
    )


async def ready(bench: Bench, processes: list[Process]) -> None:
    """Wait until each of these workers has taken its lease."""

    async def leased() -> bool:
        async with bench.database.connection() as connection:
            cursor = await connection.execute("SELECT id FROM workers")
            ids = [str(row[0]) for row in await cursor.fetchall()]
        return all(any(f".{process.pid}." in one for one in ids) for process in processes)

    await until(leased)


@asynccontextmanager
async def serving(url: str, process: Process) -> AsyncIterator[None]:
    """Wait until an HTTP server answers."""

    async def answers() -> bool:
        if process.returncode is not None:
            raise RuntimeError(f"the server for {url} stopped at its start")
        try:
            return (await client.get(url)).status_code == httpx.codes.OK
        except httpx.TransportError:
            return False

    async with httpx.AsyncClient(trust_env=False) as client:
        await until(answers)
    yield


@asynccontextmanager
async def talking(bench: Bench, *arguments: str) -> AsyncIterator[Callable[[str], Awaitable[str]]]:
    """A process that answers each line with a line; it has said one when it is ready."""
    command = launched(Spawned(command=(sys.executable, "-m", *arguments), env={},
                               log=bench.servers.folder / "talking.log"))  # fmt: skip
    process = await asyncio.create_subprocess_exec(
        *command, stdin=PIPE, stdout=PIPE, env=dict(bench.servers.environ), start_new_session=True
    )
    if process.stdin is None or process.stdout is None:
        raise RuntimeError("the process has no pipes")
    asked, told = process.stdin, process.stdout

    async def ask(line: str) -> str:
        asked.write(f"{line}\n".encode())
        answer = await asyncio.wait_for(told.readline(), PATIENCE_S)
        if not answer:
            raise RuntimeError(f"{arguments} stopped")
        return answer.decode().strip()

    try:
        await asyncio.wait_for(told.readline(), PATIENCE_S)
        yield ask
    finally:
        asked.close()
        await end(process, signal.SIGTERM, 10)


@contextmanager
def frozen(*processes: Process) -> Iterator[None]:
    """Stop processes in their tracks for a while, so that they take nothing from the others."""
    for process in processes:
        os.kill(process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for process in processes:
            os.kill(process.pid, signal.SIGCONT)


async def until(met: Callable[[], Awaitable[bool]], patience_s: float = PATIENCE_S) -> None:
    """Wait for something; a benchmark that waits for ever is worth nothing.

    Raises:
        TimeoutError: it did not come.
    """
    async with asyncio.timeout(patience_s):
        while not await met():  # noqa: ASYNC110 nothing outside of us tells
            await asyncio.sleep(0.05)
