"""What one listener has yet to hear of one topic."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator

from msgspec import Struct

ROOM = 1_000


class Gap(Struct, frozen=True):
    """Hints may have been missed here: look at what is true, then go on listening."""


Heard = bytes | Gap


class Subscription:
    """What one listener has not yet taken of one topic: bounded, oldest given up first."""

    def __init__(self, only: bytes | None = None, room: int = ROOM) -> None:
        self._only = only
        self._heard: deque[bytes] = deque(maxlen=room)
        self._gap = False
        self._news = asyncio.Event()

    async def next(self, within_s: float | None = None) -> Heard | None:
        """The next payload, or a gap, or None when nothing came within `within_s` seconds."""
        try:
            async with asyncio.timeout(within_s):
                await self._news.wait()
        except TimeoutError:
            return None
        return self._take()

    def __aiter__(self) -> AsyncIterator[Heard]:
        return self

    async def __anext__(self) -> Heard:
        await self._news.wait()
        return self._take()

    def hear(self, payload: bytes) -> None:
        """Note a payload, if this listener wants it."""
        if self._only is None or payload == self._only:
            self._gap = self._gap or len(self._heard) == self._heard.maxlen
            self._heard.append(payload)
            self._news.set()

    def miss(self) -> None:
        """Note that something may have been missed."""
        self._gap = True
        self._news.set()

    def forgive(self) -> None:
        """Forget a gap from before the listener began to listen."""
        self._gap = False
        if not self._heard:
            self._news.clear()

    def _take(self) -> Heard:
        gap, self._gap = self._gap, False
        heard = Gap() if gap else self._heard.popleft()
        if not self._heard:
            self._news.clear()
        return heard
