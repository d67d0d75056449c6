"""`undivided up` as a child process: started, watched, killed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx

from undivided.cli.stack.folder import free_port
from undivided.cli.stack.spawn import alive, until

READY_S = 60.0


class Running:
    """One data folder and the `undivided up` that runs on it, if one does."""

    def __init__(self, folder: Path) -> None:
        self.data = folder / "data"
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._out = folder / "out"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, *arguments: str, **environ: str) -> None:
        """Start `undivided up`; it is not ready yet."""
        self._out.write_bytes(b"")
        with self._out.open("ab") as out:
            self._process = subprocess.Popen(
                command("up", "--data", str(self.data), "--port", str(self.port), *arguments),
                env={**os.environ, **environ},
                stdout=out,
                stderr=out,
            )

    async def ready(self) -> dict[str, Any]:
        """Wait for the line that says so; answers run.json."""
        await self.until(lambda: f"ready {self.url}\n" in self.said())
        run: dict[str, Any] = json.loads((self.data / "run.json").read_text("utf-8"))
        return run

    async def until(self, met: Any, within_s: float = READY_S) -> None:
        """Wait for something, as long as the supervisor lives."""
        await until(lambda: met() or self._ended(), within_s)
        assert met(), f"not so; the supervisor said: {self.said()}"

    def said(self) -> str:
        """What the supervisor wrote."""
        return self._out.read_text("utf-8", "replace")

    def run(self) -> dict[str, Any]:
        """What run.json says now; it is replaced whole, so it can be read at any time."""
        run: dict[str, Any] = json.loads((self.data / "run.json").read_text("utf-8"))
        return run

    async def stop(self, sign: signal.Signals = signal.SIGTERM) -> int:
        """Stop it politely; answers the exit code."""
        assert self._process is not None
        self._process.send_signal(sign)
        return await asyncio.to_thread(self._process.wait, 30)

    async def kill(self, *pids: int) -> None:
        """Kill the supervisor, and these processes with it, without a warning."""
        assert self._process is not None
        for pid in (self._process.pid, *pids):
            os.kill(pid, signal.SIGKILL)
        self._process.wait()
        await until(lambda: not any(alive(pid) for pid in pids), 10)

    def close(self) -> None:
        """Make sure that nothing is left, however the test went."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def _ended(self) -> bool:
        return self._process is None or self._process.poll() is not None


def all_pids(run: dict[str, Any]) -> list[int]:
    """Every process that run.json lists."""
    pids = run["pids"]
    return [*pids["api"], *pids["workers"], *pids["clock"], pids["postgres"], pids["valkey"]]


def command(*arguments: str) -> list[str]:
    """The `undivided` command of this environment."""
    return [sys.executable, "-m", "undivided", *arguments]


async def agents(url: str) -> list[str]:
    """The ids of the agents of a running service."""
    async with httpx.AsyncClient(base_url=url, timeout=10) as client:
        answer = await client.get("/api/agents")
        return [agent["id"] for agent in answer.raise_for_status().json()["items"]]


async def new_agent(url: str, agent_id: str) -> None:
    """Create an agent."""
    async with httpx.AsyncClient(base_url=url, timeout=10) as client:
        answer = await client.post("/api/agents", json={"id": agent_id, "name": agent_id})
        answer.raise_for_status()
