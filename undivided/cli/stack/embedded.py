"""The two embedded servers of one data folder, as parts that are kept alive."""

from __future__ import annotations

from msgspec import Struct

from undivided.cli.stack import postgres, valkey
from undivided.cli.stack.folder import Folder
from undivided.cli.stack.kept import Kept


class Embedded(Struct, frozen=True, kw_only=True):
    """The servers and their addresses; those of Postgres over its socket where it has one."""

    postgres: Kept
    valkey: Kept
    environment: dict[str, str]
    owner_url: str
    database_url: str
    redis_url: str


async def start_embedded(folder: Folder) -> Embedded:
    """Start both servers on `folder` and see to it that role and database exist."""
    servers = folder.servers()
    cluster = postgres.Cluster(
        data=folder.postgres,
        log=folder.log("postgres"),
        port=servers.postgres_port,
        owner_password=servers.owner_password,
        app_password=servers.app_password,
    )
    cache = valkey.Cache(
        log=folder.log("valkey"), port=servers.valkey_port, password=servers.valkey_password
    )
    database = Kept("postgres", "Postgres", lambda: postgres.start(cluster))
    hints = Kept("valkey", "Valkey", lambda: valkey.start(cache))
    await database.begin()
    await postgres.ensure_database(cluster)
    await hints.begin()
    url, redis = postgres.app_url(cluster), valkey.redis_url(cache)
    return Embedded(
        postgres=database,
        valkey=hints,
        environment={"DATABASE_URL": url, "DATABASE_DIRECT_URL": url, "REDIS_URL": redis},
        owner_url=postgres.owner_url(cluster),
        database_url=postgres.app_url(cluster, tcp=True),
        redis_url=redis,
    )
