"""The application itself, on a real database, without a network between."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest
from fastapi import FastAPI

from tests.api.calls import Api
from undivided.api.app import create_app
from undivided.api.parts import Parts
from undivided.store.log import Log
from undivided.store.settings import Settings


@pytest.fixture
async def app(settings: Settings) -> AsyncIterator[FastAPI]:
    """The running application."""
    app = create_app(settings)
    async with app.router.lifespan_context(app):
        yield app


@pytest.fixture
def log(app: FastAPI) -> Log:
    """The log that the application writes, for turns driven by hand."""
    parts: Parts = app.state.parts
    return parts.outlet.log


@pytest.fixture
async def api(app: FastAPI) -> AsyncIterator[Api]:
    """A client of it."""
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://api") as client:
        yield Api(client)
