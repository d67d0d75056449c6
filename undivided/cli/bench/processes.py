"""What processes cost, read from /proc: processor time, memory, threads."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def cpu_s(pids: Iterable[int]) -> float:
    """Seconds of processor time that these processes have used so far."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            fields = _stat(pid)
            total += int(fields[11]) + int(fields[12])
    return total * _TICK_S


def memory_mb(pid: int) -> float:
    """Memory of a process that is resident."""
    pages = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * _PAGE_BYTES / 1024 / 1024


def threads(pid: int) -> int:
    """How many threads a process has."""
    return int(_stat(pid)[17])


def family(pid: int) -> list[int]:
    """A process and everything that descends from it."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parents[int(path.name)] = int(_stat(int(path.name))[1])
    found = [pid]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return found


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat after the name, which may hold anything."""
    text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    return text.rpartition(")")[2].split()
