"""The servers of one benchmark: Postgres and Valkey as they come, in a folder that goes away.

Postgres is as durable as in production: every commit is on disk before it is answered.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import tempfile
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import psycopg
from msgspec import Struct
from msgspec.structs import replace
from psycopg import sql
from redis.asyncio import Redis

from undivided.cli.stack import postgres, valkey
from undivided.cli.stack.folder import free_port
from undivided.cli.stack.spawn import end
from undivided.store.migrate import migrate
from undivided.store.settings import Settings, load_settings

_PASSWORD = "bench"  # noqa: S105 the servers listen on loopback, for minutes


class Servers(Struct, frozen=True, kw_only=True):
    """Where the servers of this run are; `environ` is what child processes are given."""

    folder: Path
    cluster: postgres.Cluster
    settings: Settings
    environ: Mapping[str, str]
    owner_url: str
    pids: tuple[int, int]


@asynccontextmanager
async def bench_servers() -> AsyncIterator[Servers]:
    """Start both servers and migrate; on leaving, both are gone, and their folder with them."""
    folder = Path(tempfile.mkdtemp(prefix="undivided-bench-"))
    try:
        cluster = postgres.Cluster(
            data=folder / "postgres",
            log=folder / "postgres.log",
            port=free_port(),
            owner_password=_PASSWORD,
            app_password=_PASSWORD,
        )
        cache = valkey.Cache(
            log=folder / "valkey.log", port=free_port(cluster.port), password=_PASSWORD
        )
        database = await _telling_when_it_commits(cluster)
        try:
            await postgres.ensure_database(cluster)
            hints = await valkey.start(cache)
            try:
                environ = _environ(folder, cluster, cache)
                settings = load_settings(environ)
                await asyncio.to_thread(migrate, settings)
                yield Servers(
                    folder=folder,
                    cluster=cluster,
                    settings=settings,
                    environ=environ,
                    owner_url=postgres.owner_url(cluster),
                    pids=(database.pid, hints.pid),
                )
            finally:
                await end(hints, signal.SIGTERM, 5)
        finally:
            await end(database, signal.SIGINT, 15)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def on_fresh_database(servers: Servers, name: str) -> Servers:
    """The same servers with an empty database, and a Valkey that has forgotten everything.

    What one group of rows leaves waiting would be work for the workers of the next.
    """
    cluster = servers.cluster
    async with await psycopg.AsyncConnection.connect(
        postgres.owner_url(cluster, "postgres"), autocommit=True
    ) as connection:
        await connection.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(
                sql.Identifier(name), sql.Identifier(cluster.database)
            )
        )
    async with Redis.from_url(servers.settings.redis_url) as redis:
        await redis.flushall()
    url, owner_url = postgres.app_url(cluster, name), postgres.owner_url(cluster, name)
    addresses = {
        "DATABASE_URL": url, "DATABASE_DIRECT_URL": url, "DATABASE_OWNER_URL": owner_url
    }  # fmt: skip
    environ = {**servers.environ, **addresses}
    return replace(servers, settings=load_settings(environ), environ=environ, owner_url=owner_url)


async def _telling_when_it_commits(cluster: postgres.Cluster) -> Process:
    """Postgres with the time of every commit at hand, which it must be started with."""
    process = await postgres.start(cluster)
    async with await psycopg.AsyncConnection.connect(
        postgres.owner_url(cluster, "postgres"), autocommit=True
    ) as connection:
        await connection.execute("ALTER SYSTEM SET track_commit_timestamp = on")
    await end(process, signal.SIGINT, 15)
    return await postgres.start(cluster)


# Models that cost no time of their own: what is measured is the product.
_SCRIPT = """
rules:
  - {contains: "^rest", step: 0, calls: [{tool: sleep, args: {seconds: 86400}}]}
  - {contains: "^think", reply: "thought", delay: 2}
  - {reply: "done"}
"""
_CONFIG = """
[models.bench]
model = "script:bench.yaml"
"""


def _environ(folder: Path, cluster: postgres.Cluster, cache: valkey.Cache) -> dict[str, str]:
    (folder / "bench.yaml").write_text(_SCRIPT, encoding="utf-8")
    path = folder / "undivided.toml"
    path.write_text(_CONFIG, encoding="utf-8")
    return {
        **os.environ,
        "DATABASE_URL": postgres.app_url(cluster),
        "DATABASE_DIRECT_URL": postgres.app_url(cluster),
        "DATABASE_OWNER_URL": postgres.owner_url(cluster),
        "REDIS_URL": valkey.redis_url(cache),
        "UNDIVIDED_CONFIG": str(path),
        "UNDIVIDED_NAMESPACE": "bench",
        "UNDIVIDED_TEST_TOOLS": "1",
    }
