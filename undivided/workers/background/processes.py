"""The processes of one host: started once, and looked after by whichever worker is there.

A command is registered before it is started. Whoever of the host's workers sees it first starts
a runner, which claims it by a file that only one can make: of two, one does nothing. So a worker
that dies at any point leaves a command that is not started yet, and is started by another; or
one that runs, and whose end another reads. A command that was registered long ago and has left
no trace is not started: it may have run before its traces were lost. Traces are kept for longer
than that, so that whoever still takes a command for a new one finds it claimed.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import sys
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal, TypeVar

import msgspec
from msgspec import Struct

from undivided.domain.callbacks import Ended
from undivided.domain.ids import digest
from undivided.domain.state.callback import CallbackRow

STARTED_WITHIN = timedelta(seconds=60)
TRACED_FOR = timedelta(seconds=90)
"""How long after its registration a command leaves traces at least."""
CLAIMED_FOR_S = 10.0
"""How long a runner that has claimed a command may take until it says who it is."""
_PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "USER")
"""What a command sees of our environment: our own secrets are there too."""
_RUNNER = Path(__file__).with_name("runner.py")

T = TypeVar("T")
Standing = Literal["running", "startable"]


class Spec(Struct, frozen=True):
    """What a runner is to run, and for which callback."""

    callback_id: str
    command: str
    limit_s: float | None
    cwd: str
    start_by: float
    """By this host's clock, as `time.time()`."""


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
            return _unclaimed(folder, row, now)
        if _is_alive(runner):
            return "running"
        # It may have ended between the two looks.
        return _read(folder / "result", Ended) or Ended(None)

    async def start(self, row: CallbackRow, now: datetime) -> None:
        """Start a command; nothing happens if another worker has started it, or it is too late."""
        folder = self._laid(row, now)
        starter = await asyncio.create_subprocess_exec(
            sys.executable, "-I", "-S", str(_RUNNER), str(folder),
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL, start_new_session=True,
            env={name: os.environ[name] for name in _PASSED_ON if name in os.environ},
        )  # fmt: skip
        await starter.wait()

    def withhold(self, row: CallbackRow, now: datetime) -> bool:
        """Claim a command so that nobody starts it; false if somebody has."""
        try:
            os.close(os.open(self._laid(row, now) / "claim", os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            return False
        return True

    def traced(self) -> tuple[str, ...]:
        """The callbacks of which there are traces; some may be of another installation."""
        specs = (_read(path, Spec) for path in (self._root / "runs").glob("*/spec"))
        return tuple(spec.callback_id for spec in specs if spec is not None)

    def forget(self, row: CallbackRow, now: datetime) -> None:
        """Remove the traces of a process whose callback is closed, once nobody can start it."""
        if now - row.registered_at > TRACED_FOR:
            shutil.rmtree(self._folder(row), ignore_errors=True)

    def end(self, row: CallbackRow) -> None:
        """Tell the runner of a process to end it, if it is still that very one."""
        runner = _read(self._folder(row) / "pid", Running)
        if runner is not None and _is_alive(runner):
            with contextlib.suppress(ProcessLookupError):
                os.kill(runner.pid, signal.SIGTERM)

    def _laid(self, row: CallbackRow, now: datetime) -> Path:
        """The folder of a command, with what its runner needs to know."""
        folder, work = self._folder(row), self._root / "work" / digest((row.agent_id,))
        for path in (folder, work):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        left_s = (STARTED_WITHIN - (now - row.registered_at)).total_seconds()
        spec = Spec(row.id, row.command, row.limit_s, str(work), time.time() + left_s)
        unfinished = folder / f"spec.{os.getpid()}"
        unfinished.write_bytes(msgspec.json.encode(spec))
        unfinished.replace(folder / "spec")
        return folder

    def _folder(self, row: CallbackRow) -> Path:
        return self._root / "runs" / digest((row.agent_id, row.id))


def _unclaimed(folder: Path, row: CallbackRow, now: datetime) -> Standing | Ended:
    try:
        claimed_at = (folder / "claim").stat().st_mtime
    except FileNotFoundError:
        return "startable" if now - row.registered_at < STARTED_WITHIN else Ended(None)
    # By this host's clock, as the file is; the database's may be another.
    return "running" if time.time() - claimed_at < CLAIMED_FOR_S else Ended(None)


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
