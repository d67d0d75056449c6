"""Files and recordings that models answer from: read off the event loop, parsed once.

A file is read again when it has changed; a recording is named by its content and never does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Generic, TypeVar

from undivided.store.model_sources import content_of, unreadable

Parsed = TypeVar("Parsed")
_Stamp = tuple[int, int, int]
_KEPT_RECORDINGS = 64


class ParsedFiles(Generic[Parsed]):
    """What the files of one kind say, by path, as long as they stay as they were."""

    def __init__(self, parse: Callable[[bytes, str], Parsed]) -> None:
        self._parse = parse
        self._kept: dict[str, tuple[_Stamp, Parsed]] = {}

    async def get(self, path: str) -> Parsed:
        """What the file at `path` says.

        Raises:
            Invalid: it cannot be read, or has a mistake.
        """
        stamp = _stamp(path)
        kept = self._kept.get(path)
        if kept is None or kept[0] != stamp:
            kept = stamp, await asyncio.to_thread(self._read, path)
            self._kept[path] = kept
        return kept[1]

    def _read(self, path: str) -> Parsed:
        return self._parse(content_of(path), path)


class ParsedRecordings(Generic[Parsed]):
    """What uploaded recordings say, by the digest of their content; the latest used are kept."""

    def __init__(
        self,
        parse: Callable[[bytes, str], Parsed],
        load: Callable[[str], Awaitable[bytes]],
    ) -> None:
        self._parse, self._load = parse, load
        self._kept: dict[str, Parsed] = {}

    async def get(self, sha256: str) -> Parsed:
        """What the recording with this digest says.

        Raises:
            NotFound: nobody uploaded it.
            Invalid: it has a mistake.
        """
        if sha256 in self._kept:
            parsed = self._kept.pop(sha256)
        else:
            content = await self._load(sha256)
            parsed = await asyncio.to_thread(self._parse, content, f"recording {sha256}")
        self._kept[sha256] = parsed
        while len(self._kept) > _KEPT_RECORDINGS:
            del self._kept[next(iter(self._kept))]
        return parsed


def _stamp(path: str) -> _Stamp:
    try:
        found = Path(path).stat()
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from error
    return found.st_mtime_ns, found.st_size, found.st_ino
