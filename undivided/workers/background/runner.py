"""Runs one command to its end and leaves how it ended in a file; started as a script.

It belongs to nobody: it outlives the worker that started it, and any worker of the host reads
what it leaves. It keeps only the tails of what the command says, so that no command can fill
memory or disk. It imports nothing of ours, so that it starts quickly and needs no environment.

`FOLDER/spec` is JSON with `command`, `limit_s`, `cwd`, and the moment until which it may begin,
`start_by`. It makes `claim` first, which only one runner can; then `pid`, and at the end `result`,
each written whole or not at all.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import IO

TAIL_BYTES = 8192
GRACE_S = 5.0
LINGER_S = 1.0
"""How long output is still awaited that children of an ended command hold open."""
CHUNK_BYTES = 65536
ASKED_EVERY_S = 1.0
"""How often it is looked whether we are asked to end the command."""
NOT_STARTED = 126
"""The exit code that shells give what they cannot run."""


def main(folder: Path) -> None:
    """Claim the command, let go of whoever started us, run it."""
    spec = json.loads((folder / "spec").read_text("utf-8"))
    if time.time() > spec["start_by"]:
        return  # whoever starts us was held up: the traces of an earlier run may be gone
    try:
        os.close(os.open(folder / "claim", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        return
    if os.fork() > 0:
        return
    os.setsid()
    asked = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: asked.set())
    _write(folder / "pid", {"pid": os.getpid(), "started": _started(), "boot": _boot()})
    result = _run(str(spec["command"]), float(spec["limit_s"]), str(spec["cwd"]), asked)
    _write(folder / "result", result)


def _run(command: str, limit_s: float, cwd: str, asked: threading.Event) -> dict[str, object]:
    """Run to the end, to the limit, or until we are asked to end it."""
    began = time.monotonic()
    try:
        process = subprocess.Popen(
            ["/bin/sh", "-c", command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, cwd=cwd, start_new_session=True,
        )  # fmt: skip
    except (OSError, ValueError) as error:  # too long, or with a NUL in it
        return {
            "exit_code": NOT_STARTED, "duration_s": 0.0, "stdout": "",
            "stderr": f"the command could not be started: {error}", "timed_out": False,
        }  # fmt: skip
    out, err = _Tail(process.stdout), _Tail(process.stderr)
    while (left_s := began + limit_s - time.monotonic()) > 0 and not asked.is_set():
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(min(left_s, ASKED_EVERY_S))
            break
    timed_out = process.poll() is None and not asked.is_set()
    if process.poll() is None:
        _end(process)
    duration_s = time.monotonic() - began
    return {
        "exit_code": process.returncode if process.returncode >= 0 else 128 - process.returncode,
        "duration_s": duration_s, "stdout": out.text(), "stderr": err.text(),
        "timed_out": timed_out,
    }  # fmt: skip


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the command with all that it started: gently, then what is left of it not."""
    os.killpg(process.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(GRACE_S)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


class _Tail:
    """The last bytes of a pipe, read to its end by a thread."""

    def __init__(self, pipe: IO[bytes] | None) -> None:
        self._pipe, self._kept = pipe, b""
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while self._pipe is not None and (chunk := os.read(self._pipe.fileno(), CHUNK_BYTES)):
            self._kept = (self._kept + chunk)[-TAIL_BYTES:]

    def text(self) -> str:
        self._thread.join(LINGER_S)
        return self._kept.decode("utf-8", "replace")


def _write(path: Path, what: dict[str, object]) -> None:
    unfinished = path.with_suffix(".new")
    unfinished.write_text(json.dumps(what), "utf-8")
    unfinished.replace(path)


def _started() -> str:
    """When this process began, as the kernel counts it: tells it from a later one of its id."""
    return Path("/proc/self/stat").read_text("utf-8").rsplit(")", 1)[1].split()[19]


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text("utf-8").strip()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
