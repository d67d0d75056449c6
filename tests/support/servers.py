"""The real servers that a test process owns, and a fresh database for each test.

Each pytest-xdist worker has servers of its own: a transaction that one test holds open on
purpose holds back every reader of the log in the whole cluster.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import psycopg
from msgspec import Struct
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from undivided.cli.stack import postgres, valkey
from undivided.cli.stack.folder import free_port
from undivided.cli.stack.spawn import end
from undivided.store.config import default_config
from undivided.store.migrate import migrate
from undivided.store.settings import Settings

TEMPLATE = "undivided_template"


class Servers(Struct, frozen=True, kw_only=True):
    """Where Postgres and Valkey are: `owner(name)` and `app(name)` address one database."""

    owner: Callable[[str], str]
    app: Callable[[str], str]
    redis_url: str


class Database(Struct, frozen=True, kw_only=True):
    """One test's own database, migrated and empty."""

    name: str
    owner_url: str
    app_url: str


def settings_for(servers: Servers, name: str) -> Settings:
    """Settings for one database; its name also keeps its Redis keys apart."""
    return Settings(
        database_url=servers.app(name),
        database_direct_url=servers.app(name),
        database_owner_url=servers.owner(name),
        redis_url=servers.redis_url,
        config=default_config(),
        test_tools=True,
        namespace=f"test-{name}",
    )


def environment_for(settings: Settings) -> dict[str, str]:
    """The same settings as a child process reads them."""
    return {
        **os.environ,
        "DATABASE_URL": settings.database_url,
        "DATABASE_DIRECT_URL": settings.database_direct_url,
        "DATABASE_OWNER_URL": settings.database_owner_url,
        "REDIS_URL": settings.redis_url,
        "UNDIVIDED_NAMESPACE": settings.namespace,
        "UNDIVIDED_TEST_TOOLS": "1" if settings.test_tools else "0",
    }


@contextmanager
def running_servers(folder: Path) -> Iterator[Servers]:
    """Servers of this process, gone when it is; given ones, if the environment names them."""
    owner = os.environ.get("UNDIVIDED_TEST_DATABASE_URL")
    redis = os.environ.get("UNDIVIDED_TEST_REDIS_URL")
    if owner and redis:
        yield _given(owner, redis)
        return
    cluster = postgres.Cluster(
        data=folder / "postgres",
        log=folder / "postgres.log",
        port=free_port(),
        owner_password="owner",
        app_password="app",
        durable=False,
    )
    cache = valkey.Cache(log=folder / "valkey.log", port=free_port(cluster.port), password="valkey")
    with _in_background(cluster, cache):
        yield Servers(
            owner=lambda name: postgres.owner_url(cluster, name),
            app=lambda name: postgres.app_url(cluster, name),
            redis_url=valkey.redis_url(cache),
        )


def make_template(servers: Servers) -> str:
    """Migrate one database that all others are copies of; answers its name."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "alone")
    name = f"{TEMPLATE}_{worker}"
    with psycopg.connect(servers.owner("postgres"), autocommit=True) as admin:
        admin.execute(sql.SQL("DROP DATABASE IF EXISTS {}").format(sql.Identifier(name)))
        admin.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    migrate(settings_for(servers, name))
    return name


@contextmanager
def fresh_database(servers: Servers, template: str) -> Iterator[Database]:
    """A copy of the template, dropped afterwards whoever is still connected."""
    name = f"t_{uuid4().hex[:12]}"
    with psycopg.connect(servers.owner("postgres"), autocommit=True) as admin:
        admin.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY FILE_COPY").format(
                sql.Identifier(name), sql.Identifier(template)
            )
        )
        try:
            yield Database(name=name, owner_url=servers.owner(name), app_url=servers.app(name))
        finally:
            admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def _given(owner: str, redis: str) -> Servers:
    """Servers that somebody else runs; the application's role is made there."""
    with psycopg.connect(owner, autocommit=True) as admin:
        role = postgres.APP_ROLE
        if not admin.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (role,)).fetchone():
            admin.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(role)))
        admin.execute(sql.SQL("ALTER ROLE {} PASSWORD 'app'").format(sql.Identifier(role)))

    def url(name: str, user: str = "", password: str = "") -> str:
        parts = conninfo_to_dict(owner)
        user = user or str(parts["user"])
        password = password or str(parts.get("password", ""))
        return f"postgresql://{user}:{password}@{parts['host']}:{parts.get('port', 5432)}/{name}"

    return Servers(owner=url, app=lambda name: url(name, role, "app"), redis_url=redis)


@contextmanager
def _in_background(cluster: postgres.Cluster, cache: valkey.Cache) -> Iterator[None]:
    """Run the servers from a thread of their own, which lasts as long as they do."""
    ready, enough = threading.Event(), threading.Event()
    failed: list[Exception] = []

    async def serve() -> None:
        try:
            server = await postgres.start(cluster)
            await postgres.ensure_database(cluster)
            hints = await valkey.start(cache)
        except Exception as error:  # noqa: BLE001 it is raised again where the test waits
            failed.append(error)
            return
        finally:
            ready.set()
        await asyncio.to_thread(enough.wait)
        await end(hints, signal.SIGTERM, 5)
        await end(server, signal.SIGQUIT, 10)

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    ready.wait()
    if failed:
        thread.join()
        raise failed[0]
    try:
        yield
    finally:
        enough.set()
        thread.join()
