"""One API process: the application behind uvicorn, until it is asked to leave."""

from __future__ import annotations

import uvicorn

from undivided.api.app import create_app
from undivided.store.settings import Settings

GRACE_S = 10
"""How long open requests may take to end once the process is asked to leave."""


async def serve(settings: Settings, host: str, port: int) -> None:
    """Serve HTTP until SIGTERM, SIGINT or cancellation."""
    config = uvicorn.Config(
        create_app(settings),
        host=host,
        port=port,
        loop="uvloop",
        http="httptools",
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=GRACE_S,
        server_header=False,
        proxy_headers=False,
    )
    await uvicorn.Server(config).serve()
