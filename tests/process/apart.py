"""Servers that only one module has, so that they can be killed."""

from __future__ import annotations

import asyncio
import signal
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

from psycopg import AsyncConnection, sql
from redis.asyncio import Redis

from tests.support.servers import Servers, settings_for
from undivided.cli.stack import postgres, valkey
from undivided.cli.stack.folder import free_port
from undivided.cli.stack.spawn import end
from undivided.store.migrate import migrate
from undivided.store.settings import Settings


class Apart:
    """A Postgres and a Valkey that can be killed and come back where they were."""

    def __init__(self, folder: Path) -> None:
        self.cluster = postgres.Cluster(
            data=folder / "postgres",
            log=folder / "postgres.log",
            port=free_port(),
            owner_password="owner",
            app_password="app",
        )
        self.cache = valkey.Cache(
            log=folder / "valkey.log", port=free_port(self.cluster.port), password="valkey"
        )
        self.servers = Servers(
            owner=lambda name: postgres.owner_url(self.cluster, name),
            app=lambda name: postgres.app_url(self.cluster, name),
            redis_url=valkey.redis_url(self.cache),
        )
        self._postgres: Process | None = None
        self._valkey: Process | None = None

    async def settings(self) -> Settings:
        """Settings for one more database, migrated and empty."""
        name = f"t_{uuid4().hex[:12]}"
        async with await AsyncConnection.connect(
            self.servers.owner("postgres"), autocommit=True
        ) as owner:
            await owner.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        settings = settings_for(self.servers, name)
        await asyncio.to_thread(migrate, settings)
        return settings

    async def start_postgres(self) -> None:
        """Start it on the files that it has; answers when it accepts connections."""
        self._postgres = await postgres.start(self.cluster)

    async def kill_postgres(self) -> None:
        """Kill the server without a warning; its backends notice, and end."""
        await _kill(self._postgres)

    async def start_valkey(self) -> None:
        """Start it, with nothing in its memory."""
        self._valkey = await valkey.start(self.cache)

    async def kill_valkey(self) -> None:
        """Kill it without a warning."""
        await _kill(self._valkey)

    async def listeners(self) -> int:
        """How many clients wait for Valkey to tell them something."""
        async with Redis.from_url(self.servers.redis_url) as client:
            return int((await client.info("clients"))["blocked_clients"])

    async def close(self) -> None:
        """Stop both, however the tests went."""
        for process, sign in ((self._valkey, signal.SIGTERM), (self._postgres, signal.SIGQUIT)):
            if process is not None and process.returncode is None:
                await end(process, sign, 10)


@asynccontextmanager
async def servers_apart(folder: Path) -> AsyncIterator[Apart]:
    """Both servers at work."""
    apart = Apart(folder)
    try:
        await apart.start_postgres()
        await postgres.ensure_database(apart.cluster)
        await apart.start_valkey()
        yield apart
    finally:
        await apart.close()


async def _kill(process: Process | None) -> None:
    assert process is not None
    process.kill()
    await process.wait()
