"""Embedded Valkey: it carries hints only, so it keeps nothing on disk."""

from __future__ import annotations

import asyncio
from asyncio.subprocess import Process
from pathlib import Path

from msgspec import Struct
from redis.asyncio import Redis
from redis.exceptions import RedisError

from undivided.cli.stack.binaries import valkey_program
from undivided.cli.stack.spawn import Mistake, Spawned, last_words, server_identity, spawn

_ENV = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}
_START_S = 20


class Cache(Struct, frozen=True, kw_only=True):
    """One Valkey; `outlives`: whether it goes on when the process that started it dies."""

    log: Path
    port: int
    password: str
    outlives: bool = False


def redis_url(cache: Cache) -> str:
    """The address of the server, with its password."""
    return f"redis://:{cache.password}@127.0.0.1:{cache.port}/0"


async def start(cache: Cache) -> Process:
    """Start the server; answers when it accepts connections.

    Raises:
        Mistake: it does not come up.
    """
    identity = server_identity()
    process = await spawn(
        Spawned(
            command=(str(valkey_program(identity)), "-"),
            said=_config(cache).encode(),
            env=_ENV,
            log=cache.log,
            identity=identity,
            outlives=cache.outlives,
        )
    )
    await _until_ready(cache, process)
    return process


def _config(cache: Cache) -> str:
    """What the server is told; on its standard input, for a command line can be seen by all."""
    return (
        f"bind 127.0.0.1\nport {cache.port}\nrequirepass {cache.password}\n"
        'save ""\nappendonly no\ndaemonize no\n'
    )


async def _until_ready(cache: Cache, process: Process) -> None:
    deadline = asyncio.get_running_loop().time() + _START_S
    async with Redis.from_url(redis_url(cache)) as client:
        while asyncio.get_running_loop().time() < deadline:
            if process.returncode is not None:
                raise Mistake(f"Valkey stopped at its start: {last_words(cache.log)}")
            try:
                await client.ping()
            except (RedisError, OSError):
                await asyncio.sleep(0.02)
            else:
                return
    raise Mistake(f"Valkey was not ready within {_START_S} s: {last_words(cache.log)}")
