"""One API process: the application behind uvicorn, until it is asked to leave."""

from __future__ import annotations

import gc
import socket

import uvicorn
from fastapi import FastAPI

from undivided.api.app import create_app
from undivided.store.settings import Settings

GRACE_S = 10
"""How long open requests may take to end once the process is asked to leave."""


class _Server(uvicorn.Server):
    """Tells streams and waits to end before it waits for them."""

    def __init__(self, config: uvicorn.Config, app: FastAPI) -> None:
        super().__init__(config)
        self._app = app

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End what goes on, then close."""
        self._app.state.parts.leaving.set()
        await super().shutdown(sockets)


async def serve(settings: Settings, host: str, port: int) -> None:
    """Serve HTTP until SIGTERM, SIGINT or cancellation."""
    app = create_app(settings)
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        loop="uvloop",
        http="httptools",
        ws="websockets-sansio",
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=GRACE_S,
        server_header=False,
        proxy_headers=False,
    )
    gc.freeze()  # what is there by now stays, and need not be looked at again and again
    await _Server(config, app).serve()
