"""The witness file: a line for every run, and with a key at most one, wherever a writer died."""

from __future__ import annotations

import asyncio
import fcntl
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from undivided.domain.tooling import Returned
from undivided.workers.tools import ToolContext, Tools, run_tool, witness

DIE_BEFORE = """
import os, sys
from pathlib import Path
from undivided.workers.tools import witness
steps, whole = int(sys.argv[2]), witness._write
def write(file, content):
    global steps
    if steps == 0:
        os.write(file, content[:len(content) // 2])  # a write that was torn in the middle
        os._exit(9)
    steps -= 1
    whole(file, content)
witness._write = write
witness.append_once(Path(sys.argv[1]), "mine", "key")
"""


LOCKS = Path("/proc/locks")


def waited_for(path: Path) -> bool:
    """Whether somebody waits for the lock on `path`."""
    inode = f":{path.stat().st_ino} "
    return any("->" in line and inode in line for line in LOCKS.read_text().splitlines())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "witness"


class TestAppending:
    """Without a key every run leaves a line; with one, the first does."""

    def test_every_run_leaves_a_line(self, path: Path) -> None:
        witness.append(path, "a")
        witness.append(path, "a")
        assert path.read_text() == "a\na\n"

    def test_one_line_for_one_key(self, path: Path) -> None:
        assert witness.append_once(path, "a", "one")
        assert not witness.append_once(path, "a", "one")
        assert witness.append_once(path, "a", "two")
        assert path.read_text() == "a\na\n"

    def test_writers_at_once(self, path: Path) -> None:
        def run(number: int) -> None:
            witness.append_once(path, "keyed", f"key {number % 10}")
            witness.append(path, "free")

        with ThreadPoolExecutor(16) as pool:
            list(pool.map(run, range(100)))
        lines = path.read_text().split()
        assert (lines.count("keyed"), lines.count("free")) == (10, 100)

    @pytest.mark.skipif(not LOCKS.exists(), reason="only Linux tells who waits for a lock")
    def test_a_writer_waits_for_the_one_at_work(self, path: Path) -> None:
        path.touch()
        with ThreadPoolExecutor(1) as pool, path.open() as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            writing = pool.submit(witness.append_once, path, "a", "one")
            deadline = time.monotonic() + 20
            while not writing.done() and not waited_for(path) and time.monotonic() < deadline:
                time.sleep(0.001)
            assert waited_for(path)
            assert path.read_text() == ""
            fcntl.flock(held, fcntl.LOCK_UN)
            assert writing.result(20)
        assert path.read_text() == "a\n"


class TestCrashes:
    """A writer that dies at any of its writes leaves a file on which the next one is right."""

    @pytest.mark.parametrize("writes", [0, 1])
    @pytest.mark.parametrize("between", [False, True])
    def test_died_in_the_middle(self, path: Path, writes: int, between: bool) -> None:
        witness.append_once(path, "before", "other")
        died = subprocess.run(
            [sys.executable, "-c", DIE_BEFORE, str(path), str(writes)],
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
            check=False,
        )
        assert died.returncode == 9
        if between:
            witness.append(path, "mine")
        assert witness.append_once(path, "mine", "key")
        assert not witness.append_once(path, "mine", "key")
        assert not witness.append_once(path, "before", "other")
        assert path.read_text() == "before\n" + "mine\n" * (2 if between else 1)


class TestVariants:
    """Only the idempotent variant goes by the idempotency key."""

    @pytest.mark.parametrize(("effect", "lines"), [("pure", 2), ("idempotent", 1), ("once", 2)])
    async def test_run_twice(self, path: Path, effect: str, lines: int) -> None:
        now = datetime(2026, 1, 1, tzinfo=UTC)
        context = ToolContext("ada", "ses_1", "trn_1", "call_1", "key_1", now)
        args = {"path": str(path), "line": "x", "effect": effect}
        tool = Tools(test_tools=True).resolve("test_append", args)
        for _ in range(2):
            assert isinstance(await run_tool(tool, context, args, 30), Returned)
        assert await asyncio.to_thread(path.read_text) == "x\n" * lines
