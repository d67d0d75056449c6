"""The HTTP application: routes, problems and the parts they work with."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import lru_cache, partial

from fastapi import FastAPI

from undivided.api import problems
from undivided.api.openapi import describe
from undivided.api.parts import running_parts
from undivided.api.routes import (
    agents,
    approvals,
    callbacks,
    events,
    health,
    heartbeats,
    items,
    landing,
    live,
    mailbox,
    messages,
    metrics,
    notifications,
    recordings,
    records,
    sessions,
)
from undivided.api.shortcuts import shortcuts
from undivided.store.settings import Settings

ROUTERS = (
    agents.router,
    mailbox.router,
    messages.router,
    records.router,
    items.router,
    sessions.router,
    approvals.router,
    notifications.router,
    live.router,
    events.router,
    recordings.router,
    callbacks.router,
    heartbeats.router,
    health.router,
    metrics.router,
    landing.router,
)


def create_app(settings: Settings) -> FastAPI:
    """The application for one set of settings; its lifespan opens and closes everything."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with running_parts(settings) as parts:
            app.state.parts = parts
            yield

    app = FastAPI(title="Undivided", version="0.1.0", lifespan=lifespan, redirect_slashes=False)
    problems.install(app)
    for router in ROUTERS:
        app.include_router(router)
    app.router.routes[:0] = shortcuts()
    app.openapi = lru_cache(1)(partial(describe, app))  # type: ignore[method-assign]
    return app
