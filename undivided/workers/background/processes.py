"""The processes of one host: started once, and looked after by whichever worker is there.

A command is registered before it is started. Whoever of the host's workers sees it first starts
a runner, which claims it by a file that only one can make: of two, one does nothing. So a worker
that dies at any point leaves a command that is not started yet, and is started by another; or
one that runs, and whose end another reads. A command that was registered long ago and has left
no trace is not started: it may have run before its traces were lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal, TypeVar

import msgspec
from msgspec import Struct

from undivided.domain.callbacks import Ended
from undivided.domain.ids import digest
from undivided.domain.state.callback import CallbackRow

STARTED_WITHIN = timedelta(seconds=60)
CLAIMED_FOR_S = 10.0
"""How long a runner that has claimed a command may take until it says who it is."""
_PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "USER")
"""What a command sees of our environment: our own secrets are there too."""
_RUNNER = Path(__file__).with_name("runner.py")

T = TypeVar("T")
Standing = Literal["running", "startable"]


class Running(Struct, frozen=True):
    """A process of this host: its id alone may be given to a later one."""

    pid: int
    started: str
    boot: str


class Processes:
    """The background processes below one folder of this host."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def look(self, row: CallbackRow, now: datetime) -> Standing | Ended:
        """How a process stands; with `exit_code` None it is gone and nobody knows how it ended."""
        folder = self._folder(row)
        if (result := _read(folder / "result", Ended)) is not None:
            return result
        runner = _read(folder / "pid", Running)
        if runner is None:
            return self._unclaimed(folder, row, now)
        if _is_alive(runner):
            return "running"
        # It may have ended between the two looks.
        return _read(folder / "result", Ended) or Ended(None)

    def _unclaimed(self, folder: Path, row: CallbackRow, now: datetime) -> Standing | Ended:
        claim = folder / "claim"
        if claim.exists():
            age_s = now.timestamp() - claim.stat().st_mtime
            return "running" if age_s < CLAIMED_FOR_S else Ended(None)
        return "startable" if now - row.registered_at < STARTED_WITHIN else Ended(None)

    async def start(self, row: CallbackRow) -> None:
        """Start a command; nothing happens if another worker has started it."""
        folder, work = self._folder(row), self._root / "work" / digest((row.agent_id,))
        for path in (folder, work):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        spec = {"command": row.command, "limit_s": row.limit_s, "cwd": str(work)}
        unfinished = folder / f"spec.{os.getpid()}"
        unfinished.write_text(json.dumps(spec), "utf-8")
        unfinished.replace(folder / "spec")
        starter = await asyncio.create_subprocess_exec(
            sys.executable, "-I", "-S", str(_RUNNER), str(folder),
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL, start_new_session=True,
            env={name: os.environ[name] for name in _PASSED_ON if name in os.environ},
        )  # fmt: skip
        await starter.wait()

    def forget(self, row: CallbackRow) -> None:
        """Remove the traces of a process whose end was delivered."""
        shutil.rmtree(self._folder(row), ignore_errors=True)

    def end(self, row: CallbackRow) -> None:
        """Tell the runner of a process to end it, if it is still that very one."""
        runner = _read(self._folder(row) / "pid", Running)
        if runner is not None and _is_alive(runner):
            with contextlib.suppress(ProcessLookupError):
                os.kill(runner.pid, signal.SIGTERM)

    def _folder(self, row: CallbackRow) -> Path:
        return self._root / "runs" / digest((row.agent_id, row.id))


def _read(path: Path, kind: type[T]) -> T | None:
    """What a file says; None if there is none, or if it says nothing that we know.

    A machine that loses its power can leave an empty file, and a command can write there too.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (FileNotFoundError, msgspec.DecodeError, UnicodeDecodeError):
        return None


def _is_alive(runner: Running) -> bool:
    """Whether this very process runs, and not a later one that was given its id."""
    try:
        stat = Path(f"/proc/{runner.pid}/stat").read_text("utf-8")
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("utf-8").strip()
    except (FileNotFoundError, ProcessLookupError):
        return False
    state, *rest = stat.rsplit(")", 1)[1].split()
    return state not in "ZX" and rest[18] == runner.started and boot == runner.boot
