"""Embedded Postgres: one cluster in the data folder, started, recovered and stopped.

Run as root, the server itself runs as a user without rights, who often cannot walk the path
to the data folder (a home or temporary folder of root is 0700). So it is given the folder as
an open descriptor and finds it under /proc/self/fd, which needs no path at all.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import tempfile
from asyncio.subprocess import Process
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import msgspec
import psycopg
from msgspec import Struct
from psycopg import sql

from undivided.cli.stack.binaries import postgres_programs
from undivided.cli.stack.leftover import end_leftover
from undivided.cli.stack.spawn import (
    Identity,
    Mistake,
    Spawned,
    last_words,
    server_identity,
    spawn,
)

MAJOR = "18"
APP_ROLE = "undivided_app"
_ENV = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}
_SOCKET_PATH_BYTES = 107
_START_S = 120


class Cluster(Struct, frozen=True, kw_only=True):
    """One cluster: where its files are, how it is reached, and how careful it is.

    `durable=False` gives up safety against power loss, and is for tests only;
    `outlives`: whether it goes on when the process that started it dies.
    """

    data: Path
    log: Path
    port: int
    owner_password: str
    app_password: str
    database: str = "undivided"
    durable: bool = True
    outlives: bool = False


def owner_url(cluster: Cluster, database: str | None = None, *, tcp: bool = False) -> str:
    """The address for the owner of the schema."""
    return _url(cluster, ("postgres", cluster.owner_password), database, tcp=tcp)


def app_url(cluster: Cluster, database: str | None = None, *, tcp: bool = False) -> str:
    """The address for the application, which owns nothing."""
    return _url(cluster, (APP_ROLE, cluster.app_password), database, tcp=tcp)


async def start(cluster: Cluster) -> Process:
    """Start the cluster, making it if need be; answers when it accepts connections.

    A server that an earlier run left on these files is stopped first, and whatever a crash
    left behind is recovered by the server itself.

    Raises:
        Mistake: the files are of another Postgres, or the server does not come up.
    """
    identity = server_identity(cluster.data)
    programs = postgres_programs(identity)
    _refuse_other_major(cluster.data)
    with _reachable(cluster.data, identity) as (folder, keep):
        if not (cluster.data / "PG_VERSION").exists():
            await _initialise(
                cluster,
                Spawned(
                    command=(str(programs / "initdb"), "-D", folder, *_INITDB),
                    env=_ENV,
                    log=cluster.log,
                    identity=identity,
                    keep=keep,
                ),
            )
        await end_leftover(cluster.data)
        process = await spawn(
            Spawned(
                command=(str(programs / "postgres"), "-D", folder, *_options(cluster, folder)),
                env=_ENV,
                log=cluster.log,
                identity=identity,
                keep=keep,
                outlives=cluster.outlives,
            )
        )
    await _until_ready(cluster, process)
    return process


async def ensure_database(cluster: Cluster) -> None:
    """Create the application's role and database, or bring the role's password up to date."""
    async with await psycopg.AsyncConnection.connect(
        owner_url(cluster, "postgres"), autocommit=True
    ) as connection:
        found = await connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (APP_ROLE,))
        verb = sql.SQL("CREATE" if await found.fetchone() is None else "ALTER")
        await connection.execute(
            sql.SQL("{} ROLE {} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE PASSWORD {}").format(
                verb, sql.Identifier(APP_ROLE), sql.Literal(cluster.app_password)
            )
        )
        name = cluster.database
        found = await connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (name,))
        if await found.fetchone() is None:
            await connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))


def _url(cluster: Cluster, who: tuple[str, str], database: str | None, *, tcp: bool) -> str:
    user, password = who
    name = quote(database or cluster.database, safe="")
    if tcp or not _has_socket(cluster):
        return f"postgresql://{user}:{password}@127.0.0.1:{cluster.port}/{name}"
    host = quote(str(cluster.data), safe="")
    return f"postgresql://{user}:{password}@/{name}?host={host}&port={cluster.port}"


def _has_socket(cluster: Cluster) -> bool:
    path = f"{cluster.data}/.s.PGSQL.{cluster.port}"
    return len(os.fsencode(path)) <= _SOCKET_PATH_BYTES and not set(path) & set("\"',\\")


_INITDB = (
    "--username=postgres", "--encoding=UTF8", "--locale-provider=builtin",
    "--builtin-locale=C.UTF-8", "--locale=C", "--auth=scram-sha-256", "--no-instructions",
)  # fmt: skip


def _options(cluster: Cluster, folder: str) -> list[str]:
    options = {
        "port": str(cluster.port),
        "listen_addresses": "127.0.0.1",
        "unix_socket_directories": f'"{folder}"' if _has_socket(cluster) else "",
        "max_connections": "200",
        "shared_buffers": "128MB",
        "jit": "off",
    }
    if not cluster.durable:
        options |= {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
    return [part for name, value in options.items() for part in ("-c", f"{name}={value}")]


def _refuse_other_major(data: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        found = (data / "PG_VERSION").read_text(encoding="ascii").strip()
        if found != MAJOR:
            raise Mistake(
                f"{data} was written by Postgres {found} and this release brings Postgres "
                f"{MAJOR}; choose another folder with --data, or bring the database over with "
                "pg_dump and --no-embedded"
            )


@contextlib.contextmanager
def _reachable(data: Path, identity: Identity | None) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Give the folder's name as the server may use it, and what must stay open for that."""
    data.mkdir(mode=0o700, exist_ok=True)
    if identity is None:
        yield str(data), ()
        return
    if data.stat().st_uid != identity.user:
        _hand_over(data, identity)
    descriptor = os.open(data, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{descriptor}", (descriptor,)
    finally:
        os.close(descriptor)


def _hand_over(data: Path, identity: Identity) -> None:
    """Make files of somebody else's (a restored copy, a run as another user) the server's own."""
    for path in (data, *data.rglob("*")):
        os.chown(path, identity.user, identity.group, follow_symlinks=False)


async def _initialise(cluster: Cluster, initdb: Spawned) -> None:
    with tempfile.NamedTemporaryFile("w", prefix="undivided-") as secret:
        secret.write(cluster.owner_password)
        secret.flush()
        if initdb.identity:
            os.chown(secret.name, initdb.identity.user, initdb.identity.group)
        _empty(cluster.data)
        command = (*initdb.command, f"--pwfile={secret.name}")
        process = await spawn(msgspec.structs.replace(initdb, command=command))
        if await process.wait() != 0:
            _empty(cluster.data)
            raise Mistake(
                f"Postgres cannot make a database in {cluster.data}: {last_words(cluster.log)}"
            )


def _empty(data: Path) -> None:
    """Remove what an interrupted first start left; a finished one has PG_VERSION."""
    for path in data.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


async def _until_ready(cluster: Cluster, process: Process) -> None:
    pidfile = cluster.data / "postmaster.pid"
    deadline = asyncio.get_running_loop().time() + _START_S
    while asyncio.get_running_loop().time() < deadline:
        if process.returncode is not None:
            raise Mistake(f"Postgres stopped at its start: {last_words(cluster.log)}")
        with contextlib.suppress(FileNotFoundError):
            lines = pidfile.read_text(encoding="utf-8").split("\n")
            if lines[0] == str(process.pid) and lines[7:8] and lines[7].strip() == "ready":
                return
        await asyncio.sleep(0.02)
    raise Mistake(f"Postgres was not ready within {_START_S} s: {last_words(cluster.log)}")
