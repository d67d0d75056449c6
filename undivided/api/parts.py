"""The composition root of one API process: everything it holds, made and closed in one place."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from fastapi import Request
from msgspec import Struct

from undivided.domain.policy import DEFAULT_POLICY, Policy, adopt
from undivided.store.commands.outlet import Outlet
from undivided.store.database import Database
from undivided.store.doorbell import Doorbell
from undivided.store.hints import Hints
from undivided.store.log import Log
from undivided.store.schema import needed_schema
from undivided.store.settings import Settings

POOL = 16


class Parts(Struct, frozen=True):
    """What the routes work with.

    `schema`: the revision that this release needs. `leaving`: set once the process is asked to
    leave, so that streams and waits end by themselves.
    """

    settings: Settings
    database: Database
    outlet: Outlet
    hints: Hints
    policy: Policy
    schema: str
    leaving: asyncio.Event


@asynccontextmanager
async def running_parts(settings: Settings) -> AsyncIterator[Parts]:
    """Open everything, without waiting for Postgres or Redis to be there; close it at the end."""
    database = Database(settings.database_url, POOL, "undivided-api")
    doorbell = Doorbell(settings.redis_url, settings.namespace)
    hints = Hints(settings.redis_url, settings.namespace)
    async with AsyncExitStack() as stack:
        for part, begin in ((database, database.open), (doorbell, doorbell.start),
                            (hints, hints.start)):  # fmt: skip
            await begin()
            stack.push_async_callback(part.close)
        yield Parts(
            settings,
            database,
            Outlet(Log(database), doorbell, hints),
            hints,
            adopt(DEFAULT_POLICY, settings.config.policy),
            needed_schema(),
            asyncio.Event(),
        )


def parts_of(request: Request) -> Parts:
    """The parts that serve a request."""
    parts: Parts = request.app.state.parts
    return parts
