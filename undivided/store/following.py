"""Following the tail live: page after page, then whenever something is committed.

Hints say when to look; without them (Redis away, a hint lost) it looks once a second. Nothing is
held while it waits, least of all a database connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from msgspec import Struct

from undivided.domain.coordinates import Coordinate
from undivided.domain.errors import Unavailable
from undivided.store.database import Database
from undivided.store.hints import TAIL, Hints
from undivided.store.tail import Logged, Wanted, read_tail

POLL_S = 1.0
FIRST_PAUSE_S = 0.01
QUIET_S = 15.0
PAGE_ROWS, PAGE_BYTES = 200, 1024 * 1024


class Patience(Struct):
    """How long to wait for the next hint before looking again.

    While transactions are open, a hint may have come before its event was settled: then the
    pauses begin short, and grow in case one stays open.
    """

    growing_s: float = FIRST_PAUSE_S

    def pause_s(self, in_flight: bool) -> float:
        """The next pause."""
        if not in_flight:
            return POLL_S
        self.growing_s, pause_s = min(2 * self.growing_s, POLL_S), self.growing_s
        return pause_s


async def follow(
    database: Database,
    hints: Hints,
    after: Coordinate,
    wanted: Wanted,
    leaving: asyncio.Event,
) -> AsyncIterator[list[Logged]]:
    """Events behind `after`, in order, without gap or repeat, until `leaving` is set.

    An empty list says that nothing came for `QUIET_S` seconds.
    """
    async with hints.subscribe(TAIL) as news:
        quiet, patience = 0.0, Patience()
        while not leaving.is_set():
            try:
                page = await read_tail(database, after, wanted, PAGE_ROWS, PAGE_BYTES)
            except Unavailable:  # whoever follows is not to notice but by the silence
                await asyncio.sleep(POLL_S)
                yield []
                continue
            after = page.end
            if page.events:
                quiet, patience = 0.0, Patience()
                yield page.events
            if page.full:
                continue
            pause_s = patience.pause_s(page.in_flight)
            heard = await news.next(within_s=pause_s)
            quiet += pause_s if heard is None else 0.0
            if quiet >= QUIET_S:
                quiet = 0.0
                yield []
