"""A file that witnesses side effects: one line for each time that a tool really ran.

Lines are appended under a lock on the file. With a key, a line is appended at most once, even
if its writer is killed at any point: the key and the place of its line are written to a journal
beside the file first, and whoever takes the lock next settles a promise that was not kept, by
cutting file and journal back to where they were before it.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct


class _Promise(Struct, frozen=True):
    """A line that was about to be appended: under which key, from which byte to which."""

    key: str
    start: int
    end: int


def append(path: Path, line: str) -> None:
    """Append `line` to the file, whatever was appended before."""
    with _locked(path) as file:
        _settle(path, file)
        _write(file, _encoded(line))


def append_once(path: Path, line: str, key: str) -> bool:
    """Append `line` unless this was done under `key` before; says whether it was done now."""
    with _locked(path) as file:
        kept = _settle(path, file)
        if any(promise.key == key for promise in kept):
            return False
        start, content = os.fstat(file).st_size, _encoded(line)
        _promise(path, _Promise(key, start, start + len(content)))
        _write(file, content)
        return True


def _encoded(line: str) -> bytes:
    return line.encode("utf-8", "surrogatepass") + b"\n"


@contextmanager
def _locked(path: Path) -> Iterator[int]:
    file = os.open(path, os.O_CREAT | os.O_RDWR | os.O_APPEND, 0o644)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file
    finally:
        os.close(file)


def _journal(path: Path) -> Path:
    return path.with_name(path.name + ".keys")


def _promise(path: Path, promise: _Promise) -> None:
    record = json.dumps([promise.key, promise.start, promise.end]) + "\n"
    journal = os.open(_journal(path), os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o644)
    try:
        _write(journal, record.encode())
    finally:
        os.close(journal)


def _settle(path: Path, file: int) -> list[_Promise]:
    """The promises that were kept, after withdrawing the last one if it was not."""
    journal = _journal(path)
    try:
        raw = journal.read_bytes()
    except FileNotFoundError:
        return []
    whole = raw[: raw.rfind(b"\n") + 1]
    promises = [_Promise(*json.loads(record)) for record in whole.splitlines()]
    if promises and os.fstat(file).st_size < promises[-1].end:
        if os.fstat(file).st_size > promises[-1].start:
            os.ftruncate(file, promises[-1].start)
        promises.pop()
        whole = whole[: whole[:-1].rfind(b"\n") + 1]
    if len(whole) < len(raw):
        os.truncate(journal, len(whole))
    return promises


def _write(file: int, content: bytes) -> None:
    while content:
        content = content[os.write(file, content) :]
