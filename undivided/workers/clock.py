"""The clock process: housekeeping that no agent waits for.

What is urgent (timers, retries, orphans) is swept by every worker each second. This process
removes what has outlived its use: idempotency answers after their time; and it records which
requests for approval can be answered no more. Stopping it loses nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal

from undivided.domain.errors import Unavailable
from undivided.store.database import Database
from undivided.store.idempotency import prune
from undivided.store.schema import refuse_other_schema
from undivided.store.settings import Settings
from undivided.store.settling import settle_approvals

logger = logging.getLogger("undivided.clock")

EVERY_S = 60.0


async def tick(settings: Settings) -> None:
    """Keep house every minute until SIGTERM or SIGINT.

    Raises:
        SchemaNotCurrent: there is no house of ours to keep.
    """
    leaving = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, leaving.set)
    with contextlib.suppress(Unavailable):  # it may come later
        await refuse_other_schema(settings.database_url)
    database = Database(settings.database_url, 1, "undivided-clock")
    await database.open()
    try:
        while not leaving.is_set():
            await _keep_house(database)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(leaving.wait(), EVERY_S)
    finally:
        await database.close()


async def _keep_house(database: Database) -> None:
    try:
        removed = await prune(database)
        settled = await settle_approvals(database)
        logger.info(
            "housekeeping idempotencyAnswersRemoved=%d approvalsSettled=%d", removed, settled
        )
    except Unavailable as error:
        logger.warning("housekeeping put off: %s", error)
