"""`undivided up`: the whole service under one roof, on one machine, until told to stop.

The supervisor starts the servers, brings the schema up to date, then keeps API, workers and
clock alive. It holds no state that matters: killed together with everything it started, the
next start finds all it needs in the data folder.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import httpx
from msgspec import Struct

from undivided.cli.stack.embedded import Embedded, start_embedded
from undivided.cli.stack.folder import Folder, Pids, Run, port_is_free
from undivided.cli.stack.kept import Kept, Tell
from undivided.cli.stack.spawn import Mistake, Spawned, last_words, spawn
from undivided.store.config import load_config
from undivided.store.locks import refuse_transaction_pooler
from undivided.store.migrate import migrate
from undivided.store.settings import load_settings

_READY_S = 60.0
# A worker needs up to 20 s to leave; all of it must be over within 30.
_CHILD_PATIENCE_S = 22.0
_SERVER_PATIENCE_S = 3.0


class UpOptions(Struct, frozen=True, kw_only=True):
    """What `undivided up` was asked for; `threads` is how many turns one worker does at once."""

    data: Path
    host: str
    port: int
    workers: int
    threads: int
    config: Path | None
    embedded: bool

    @property
    def url(self) -> str:
        """Where the API answers."""
        host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(self.host, self.host)  # noqa: S104
        return f"http://{host}:{self.port}"


class Supervisor:
    """One run of the stack: everything that it has started, and how to stop it."""

    def __init__(self, options: UpOptions, environ: Mapping[str, str], tell: Tell) -> None:
        self._options = options
        self._environ = environ
        self._tell = tell
        self._folder = Folder(options.data)
        self._embedded: Embedded | None = None
        self._children: list[Kept] = []
        self._keepers: list[asyncio.Task[None]] = []
        self._addresses = ("", "")
        self._announced = False

    async def run(self, ready: Tell) -> None:
        """Start everything, say when it is ready, and stop it when told to.

        Raises:
            Mistake, Undivided: something must be changed first; the text says what.
        """
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        claim = self._folder.lock()
        starting = asyncio.create_task(self._start())
        stopping = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait((starting, stopping), return_when=asyncio.FIRST_COMPLETED)
            if starting.done():
                await starting
                ready(self._options.url)
            await stopping
        finally:
            await _cancelled([starting, stopping])
            await self._stop()
            os.close(claim)

    async def _start(self) -> None:
        self._folder.withdraw()
        environ = await self._servers()
        settings = load_settings(environ, self._options.config)
        await refuse_transaction_pooler(settings.database_direct_url)
        owner = self._embedded.owner_url if self._embedded else settings.database_owner_url
        await asyncio.to_thread(
            migrate, load_settings({**environ, "DATABASE_OWNER_URL": owner}, self._options.config)
        )
        self._addresses = (
            (self._embedded.database_url, self._embedded.redis_url)
            if self._embedded
            else (settings.database_url, settings.redis_url)
        )
        await self._begin(environ)
        await self._until_ready()
        self._announced = True
        self._announce()

    async def _servers(self) -> dict[str, str]:
        """The environment of the children, once its servers run."""
        options = self._options
        if not port_is_free(options.host, options.port):
            raise Mistake(
                f"port {options.port} on {options.host} is taken; stop what listens there, or "
                "choose another with --port"
            )
        environ = dict(self._environ)
        config = options.config or (
            Path(named) if (named := environ.get("UNDIVIDED_CONFIG")) else None
        )
        if config:
            load_config(config)
            environ["UNDIVIDED_CONFIG"] = str(config.absolute())
        if options.embedded:
            self._embedded = await start_embedded(self._folder)
            environ |= self._embedded.environment
            environ.pop("DATABASE_OWNER_URL", None)
            self._keep(self._embedded.postgres)
            self._keep(self._embedded.valkey)
        return environ

    async def _begin(self, environ: Mapping[str, str]) -> None:
        options = self._options
        threads = ("worker", "--threads", str(options.threads))
        wanted = [
            ("api", "api", ("api", "--host", options.host, "--port", str(options.port))),
            *(("workers", f"worker-{number + 1}", threads) for number in range(options.workers)),
            ("clock", "clock", ("clock",)),
        ]
        for kind, name, arguments in wanted:
            child = Spawned(
                command=(sys.executable, "-m", "undivided", *arguments),
                env=environ,
                log=self._folder.log(name),
                folder=Path.cwd(),
            )
            kept = Kept(kind, name, partial(_spawned, child))
            self._children.append(kept)
            await kept.begin()

    async def _until_ready(self) -> None:
        """Wait for the API; a child that ends meanwhile has something to say to the user."""
        deadline = asyncio.get_running_loop().time() + _READY_S
        async with httpx.AsyncClient(base_url=self._options.url, trust_env=False) as client:
            while not await _says_ready(client):
                for child in self._children:
                    if child.returncode is not None:
                        said = last_words(self._folder.log(child.name))
                        raise Mistake(f"{child.name} stopped at its start: {said}")
                if asyncio.get_running_loop().time() > deadline:
                    raise Mistake(
                        f"the API was not ready within {_READY_S:.0f} s; see {self._folder.logs}"
                    )
                await asyncio.sleep(0.05)
        for child in self._children:
            self._keep(child)

    def _keep(self, part: Kept) -> None:
        self._keepers.append(asyncio.create_task(part.keep(self._tell, self._announce)))

    def _announce(self) -> None:
        if not self._announced:
            return
        database, redis = self._addresses
        of = {kind: [c.pid for c in self._children if c.kind == kind] for kind in _KINDS}
        self._folder.announce(
            Run(
                url=self._options.url,
                database_url=database,
                redis_url=redis,
                pids=Pids(
                    api=of["api"],
                    workers=of["workers"],
                    clock=of["clock"],
                    postgres=self._embedded.postgres.pid if self._embedded else None,
                    valkey=self._embedded.valkey.pid if self._embedded else None,
                ),
            )
        )

    async def _stop(self) -> None:
        """Children first, for they need the servers to leave in order."""
        self._announced = False
        await _cancelled(self._keepers)
        await asyncio.gather(*(c.stop(signal.SIGTERM, _CHILD_PATIENCE_S) for c in self._children))
        if self._embedded:
            await asyncio.gather(
                self._embedded.valkey.stop(signal.SIGTERM, _SERVER_PATIENCE_S),
                self._embedded.postgres.stop(signal.SIGINT, _SERVER_PATIENCE_S),
            )
        self._folder.withdraw()


_KINDS = ("api", "workers", "clock")


async def _spawned(child: Spawned) -> Process:
    return await spawn(child)


async def _cancelled(tasks: Sequence[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    for task in tasks:
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def _says_ready(client: httpx.AsyncClient) -> bool:
    try:
        return (await client.get("/readyz")).status_code == httpx.codes.OK
    except httpx.HTTPError:
        return False
