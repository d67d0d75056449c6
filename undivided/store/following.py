"""Following the tail live: page after page, then whenever something is committed.

Hints say when to look; without them (Redis away, a hint lost) it looks once a second. Nothing is
held while it waits, least of all a database connection.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from undivided.domain.coordinates import Coordinate
from undivided.store.database import Database
from undivided.store.hints import TAIL, Hints
from undivided.store.tail import EVERYTHING, Logged, Wanted, read_tail

POLL_S = 1.0
SETTLE_S = 0.02
"""How soon to look again when a hint came before its event was settled."""
PAGE_ROWS, PAGE_BYTES = 200, 1024 * 1024


async def follow(
    database: Database,
    hints: Hints,
    after: Coordinate,
    wanted: Wanted = EVERYTHING,
    quiet_s: float = 15.0,
) -> AsyncIterator[list[Logged]]:
    """Events behind `after` for ever, in order, without gap or repeat.

    An empty list says that nothing came for `quiet_s` seconds.
    """
    async with hints.subscribe(TAIL) as news:
        quiet = 0.0
        while True:
            page = await read_tail(database, after, wanted, PAGE_ROWS, PAGE_BYTES)
            after = page.end
            if page.events:
                quiet = 0.0
                yield page.events
            if page.full:
                continue
            heard = await news.next(within_s=POLL_S)
            quiet += POLL_S if heard is None else 0.0
            if quiet >= quiet_s:
                quiet = 0.0
                yield []
