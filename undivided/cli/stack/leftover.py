"""What an earlier run left of Postgres on a data folder, and how it is cleared away."""

from __future__ import annotations

import contextlib
import signal
from pathlib import Path

from undivided.cli.stack.spawn import end_stranger, until


async def end_leftover(data: Path) -> None:
    """Stop what still runs on these files: a whole server, or parts of a killed one.

    The parts notice by themselves that their head is gone, a moment later; until then they
    hold the shared memory without which a new server will not start.
    """
    pidfile = data / "postmaster.pid"
    with contextlib.suppress(FileNotFoundError, ValueError):
        head = int(pidfile.read_text(encoding="utf-8").split("\n", 1)[0])
        if head in _at_work_in(data):
            await end_stranger(head, signal.SIGINT, patience_s=15)
    if not await until(lambda: not _at_work_in(data), patience_s=5):
        for pid in _at_work_in(data):
            await end_stranger(pid, signal.SIGKILL, patience_s=5)
    _forget(data)


def _forget(data: Path) -> None:
    """Remove the marks of a dead server.

    One that was killed and not collected yet looks alive to Postgres; it would not start.
    """
    for stale in (data / "postmaster.pid", *data.glob(".s.PGSQL.*")):
        stale.unlink(missing_ok=True)


def _at_work_in(data: Path) -> set[int]:
    """The Postgres processes that have the folder as their own; ids alone may be reused."""
    found = set()
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and (entry / "cwd").samefile(data):
                found.add(int(entry.name))
    return {pid for pid in found if _is_postgres(pid)}


def _is_postgres(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text(encoding="ascii").strip() == "postgres"
    return False
