"""The application itself, on a real database, behind a socket of its own."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator

import httpx
import pytest
import uvicorn
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
def parts(app: FastAPI) -> Parts:
    """What the application works with."""
    parts: Parts = app.state.parts
    return parts


@pytest.fixture
def log(parts: Parts) -> Log:
    """The log that the application writes, for turns driven by hand."""
    return parts.outlet.log


@pytest.fixture
async def api(app: FastAPI) -> AsyncIterator[Api]:
    """A client of it, over a socket: an in-memory transport would hold streams back."""
    config = uvicorn.Config(app, lifespan="off", log_level="error")
    server = uvicorn.Server(config)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        serving = asyncio.create_task(server.serve([listening]))
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        async with httpx.AsyncClient(base_url=url, timeout=30) as client:
            yield Api(client)
        server.should_exit = True
        server.force_exit = True
        await serving
