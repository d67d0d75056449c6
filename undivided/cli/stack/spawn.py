"""Start child processes: as whom, with which files open, and for how long."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pwd
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

_LAUNCHER = str(Path(__file__).with_name("launch.py"))


class Mistake(Exception):
    """Something that whoever started the stack must change; the text says what, in a sentence."""


class Identity(Struct, frozen=True):
    """A user and a group of this machine, by number."""

    user: int
    group: int


class Spawned(Struct, frozen=True, kw_only=True):
    """How a child is started.

    `identity`: whom it runs as (None: as we do). `log`: file that gets what it says.
    `keep`: descriptors that stay open in it. `said`: what it reads from its standard input.
    `outlives`: whether it survives its parent.
    """

    command: Sequence[str]
    env: Mapping[str, str]
    log: Path
    folder: Path | None = None
    identity: Identity | None = None
    keep: tuple[int, ...] = ()
    said: bytes | None = None
    outlives: bool = False


def server_identity(data: Path | None = None) -> Identity | None:
    """Whom an embedded server runs as: ourselves, or somebody without rights if we are root.

    Files in `data` that are a user's already stay that user's. Postgres refuses to run as
    root, and wants a user that has a name.
    """
    if os.geteuid() != 0:
        return None
    if data and data.exists() and (owner := data.stat()).st_uid != 0:
        return Identity(owner.st_uid, owner.st_gid)
    for name in ("nobody", "postgres", "daemon"):
        with contextlib.suppress(KeyError):
            entry = pwd.getpwnam(name)
            return Identity(entry.pw_uid, entry.pw_gid)
    raise Mistake("Postgres does not run as root and this machine has no user `nobody`; add one")


async def spawn(child: Spawned) -> Process:
    """Start a child in a session of its own, so that Ctrl-C reaches only us."""
    descriptor = os.open(child.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        process = await asyncio.create_subprocess_exec(
            *launched(child),
            env=dict(child.env),
            cwd=child.folder or "/",
            stdin=asyncio.subprocess.DEVNULL if child.said is None else asyncio.subprocess.PIPE,
            stdout=descriptor,
            stderr=descriptor,
            pass_fds=child.keep,
            start_new_session=True,
        )
    finally:
        os.close(descriptor)
    if process.stdin is not None:
        process.stdin.write(child.said or b"")
        process.stdin.close()
    return process


def launched(child: Spawned) -> list[str]:
    """The command that becomes the child: see launch.py."""
    who = child.identity
    return [
        *(sys.executable, "-I", "-S", _LAUNCHER),
        "-" if child.outlives else str(os.getpid()),
        f"{who.user}:{who.group}" if who else "-",
        *child.command,
    ]


async def end(process: Process, polite: signal.Signals, patience_s: float) -> None:
    """Ask a child to stop, wait `patience_s` seconds, then kill it."""
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(polite)
        try:
            await asyncio.wait_for(process.wait(), patience_s)
        except TimeoutError:
            process.kill()
            await process.wait()


async def end_stranger(pid: int, polite: signal.Signals, patience_s: float) -> None:
    """The same for a process that is not our child, such as one that an earlier run left."""
    for sign in (polite, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, sign)
        if await until(lambda: not alive(pid), patience_s):
            return


async def until(met: Callable[[], bool], patience_s: float) -> bool:
    """Wait for a condition outside of us; answers whether it was met in time."""
    deadline = asyncio.get_running_loop().time() + patience_s
    while True:
        if met():
            return True
        if asyncio.get_running_loop().time() > deadline:
            return False
        await asyncio.sleep(0.02)


def alive(pid: int) -> bool:
    """Whether a process with this id runs; one that only waits to be collected does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    return state.rpartition(")")[2].split()[0] not in {"Z", "X"}


def last_words(log: Path) -> str:
    """The line of a child's log that says why it stopped: the last fatal one, or the last."""
    with contextlib.suppress(OSError):
        lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-20:]
        fatal = [line for line in lines if "FATAL" in line or "PANIC" in line]
        return (fatal or lines or [""])[-1]
    return ""
