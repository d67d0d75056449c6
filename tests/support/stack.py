"""A real service for one test: API, workers and clock as child processes that can be killed."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx

from tests.support.servers import environment_for
from undivided.cli.stack.folder import free_port
from undivided.cli.stack.spawn import Spawned, launched
from undivided.store.settings import Settings

KINDS = ("api", "worker", "clock")


class Stack:
    """The processes of one service; `url` stays the same when the API starts again."""

    def __init__(self, settings: Settings, folder: Path) -> None:
        self.settings = settings
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._folder = folder
        self._processes: list[tuple[str, subprocess.Popen[bytes]]] = []

    def start(self, kind: str, **environ: str) -> int:
        """Start one more process of a kind; answers its id. More environment can be given."""
        log = self._folder / f"{kind}.log"
        with log.open("ab") as file:
            process = subprocess.Popen(
                launched(
                    Spawned(
                        command=(sys.executable, "-m", "undivided", *self._arguments(kind)),
                        env={},
                        log=log,
                    )
                ),
                env={**environment_for(self.settings), **environ},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                start_new_session=True,
            )
        self._processes.append((kind, process))
        return process.pid

    def pids(self, kind: str) -> list[int]:
        """The ids of the living processes of a kind, oldest first."""
        return [
            process.pid
            for name, process in self._processes
            if name == kind and process.poll() is None
        ]

    def kill(self, pid: int, sign: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal to one of the processes; a killed one is gone when this answers."""
        process = next(process for _, process in self._processes if process.pid == pid)
        os.kill(pid, sign)
        if sign is signal.SIGKILL:
            process.wait()

    async def ended(self, pid: int) -> int:
        """Wait for one of the processes to end; answers its exit code."""
        process = next(process for _, process in self._processes if process.pid == pid)
        return await asyncio.to_thread(process.wait)

    async def ready(self, within_s: float = 30) -> None:
        """Wait until the API says that it can serve."""
        async with asyncio.timeout(within_s), httpx.AsyncClient(base_url=self.url) as client:
            while not await _is_ready(client):
                if not self.pids("api"):
                    raise AssertionError(f"the API stopped at its start: {self.said('api')}")
                await asyncio.sleep(0.02)

    def said(self, kind: str) -> str:
        """What the processes of a kind wrote."""
        return (self._folder / f"{kind}.log").read_text(encoding="utf-8", errors="replace")

    def stop(self) -> None:
        """Stop everything; what does not yield in time is killed."""
        for kind in KINDS:
            for pid in self.pids(kind):
                os.kill(pid, signal.SIGTERM)
        for _, process in self._processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _arguments(self, kind: str) -> list[str]:
        match kind:
            case "api":
                return ["api", "--port", str(self.port)]
            case "worker":
                return ["worker", "--threads", "4"]
            case _:
                return [kind]


async def _is_ready(client: httpx.AsyncClient) -> bool:
    try:
        return (await client.get("/readyz")).status_code == 200
    except httpx.TransportError:
        return False
