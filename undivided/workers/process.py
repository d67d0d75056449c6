"""A worker process: its one composition root, its sweep, and its orderly leaving.

Everything runs on one event loop; Dramatiq's threads only wait for it. The lock connection is
opened anew, under a new worker id, whenever it was lost: what was in flight on the old one is
given up, and found again by somebody's sweep.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
import socket
import tempfile
from pathlib import Path

from undivided.domain.errors import Unavailable
from undivided.store.commands.outlet import Outlet
from undivided.store.database import Database
from undivided.store.doorbell import Doorbell
from undivided.store.fresh import fresh_id
from undivided.store.hints import Hints
from undivided.store.locks import LockConnection, refuse_transaction_pooler
from undivided.store.log import Log
from undivided.store.recordings import load_recording
from undivided.store.schema import refuse_other_schema
from undivided.store.settings import Settings
from undivided.workers.attend import Attendant
from undivided.workers.background.processes import Processes
from undivided.workers.broker import Attendance
from undivided.workers.drive import Driver
from undivided.workers.model import Models
from undivided.workers.timers import Timers
from undivided.workers.tools.messages import messaging
from undivided.workers.tools.registry import Tools
from undivided.workers.tools.time import BACKGROUND_EXEC

logger = logging.getLogger("undivided.worker")

SOFT_LEAVE_S = 12.0
"""How long a leaving worker lets turns reach their next yield point by themselves."""
HARD_LEAVE_S = 8.0
"""How long it then waits for the calls that it has broken off."""
RETRY_S = 0.5


async def work(settings: Settings, threads: int) -> None:
    """Attend to agents until SIGTERM or SIGINT; `threads` turns at once.

    Raises:
        PoolerInTransactionMode, SchemaNotCurrent: it could not work here; nothing was started.
    """
    leaving = Leaving()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, leaving.asked)
    await _reachable(settings, leaving.begun)
    worker = Worker(settings, threads)
    await worker.start()
    gc.freeze()  # what is there by now stays, and need not be looked at again and again
    try:
        await worker.run(leaving)
    finally:
        await worker.close()


class Leaving:
    """How a process is asked to leave: once to do so in order, twice to break off its calls."""

    def __init__(self) -> None:
        self.begun, self.urgent = asyncio.Event(), asyncio.Event()

    def asked(self) -> None:
        """Somebody asks, for the first time or again."""
        (self.urgent if self.begun.is_set() else self.begun).set()


async def _reachable(settings: Settings, leaving: asyncio.Event) -> None:
    """Wait for Postgres; refuse a pooler that would lend our locks to others, and other schemas."""
    while not leaving.is_set():
        try:
            await refuse_transaction_pooler(settings.database_direct_url)
            await refuse_other_schema(settings.database_url)
            break
        except Unavailable:
            logger.warning("the database cannot be reached; trying again")
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(leaving.wait(), RETRY_S)


class Worker:
    """The parts of one worker process."""

    def __init__(self, settings: Settings, threads: int) -> None:
        self._settings, self._threads = settings, threads
        self._database = Database(settings.database_url, threads + 4, "undivided-worker")
        self._hints = Hints(settings.redis_url, settings.namespace)
        self._doorbell = Doorbell(settings.redis_url, settings.namespace)
        self._models = Models(settings.config, lambda name: load_recording(self._database, name))
        self._log = Log(self._database)
        outlet = Outlet(self._log, self._doorbell, self._hints)
        self._driver = Driver(self._log, self._models, _tools(settings, outlet), self._hints)
        self._timers = Timers(outlet, Processes(background_root(settings)))
        self._attendance = Attendance(settings.redis_url, settings.namespace)
        self._attendant: Attendant | None = None
        self._swept: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Open what the process needs; neither Postgres nor Redis must be there yet."""
        await self._database.open()
        await self._hints.start()
        await self._doorbell.start()

    async def run(self, leaving: Leaving) -> None:
        """Attend and sweep until `leaving`, then leave in order."""
        self._attendance.start(asyncio.get_running_loop(), self._attend, self._threads)
        stops = asyncio.create_task(self._hear_stops())
        timers = asyncio.create_task(self._timers.run(self._settings.config.workers.sweep_s))
        while not leaving.begun.is_set():
            try:
                await self._on_one_connection(leaving)
            except Unavailable as error:
                logger.warning("%s; starting over", error)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(leaving.begun.wait(), RETRY_S)
        for task in (stops, timers):
            task.cancel()
        await asyncio.gather(stops, timers, return_exceptions=True)

    async def close(self) -> None:
        """Let go of everything."""
        await self._attendance.finish(1)
        await self._models.aclose()
        await self._doorbell.close()
        await self._hints.close()
        await self._database.close()

    async def _attend(self, agent_id: str) -> None:
        if self._attendant is not None:
            await self._attendant.attend(agent_id)

    async def _on_one_connection(self, leaving: Leaving) -> None:
        """Hold flights on one lock connection until it is lost or the process leaves."""
        lease_s = self._settings.config.workers.lease_s
        worker_id = f"{fresh_id('wrk')}.{os.getpid()}.{socket.gethostname()}"
        locks = await LockConnection.open(self._settings.database_direct_url, worker_id, lease_s)
        attendant = Attendant(self._log, locks, self._driver, self._doorbell)
        self._attendant = attendant
        sweeping = asyncio.create_task(self._sweep(locks, attendant))
        try:
            await _first_of(leaving.begun.wait(), locks.lost.wait(), asyncio.shield(sweeping))
            if leaving.begun.is_set():
                await self._leave(attendant, leaving)
        finally:
            sweeping.cancel()
            await asyncio.gather(sweeping, return_exceptions=True)
            attendant.break_off("lost")
            await locks.close()

    async def _sweep(self, locks: LockConnection, attendant: Attendant) -> None:
        """Every second, outside the queue that it heals: attend to what nobody looks after."""
        config = self._settings.config.workers
        while not locks.lost.is_set():
            room = self._threads - len(self._swept)
            try:
                swept = await locks.sweep(config.lease_s, room)
            except Unavailable as error:
                logger.warning("%s: %s", error, error.__cause__)
                return
            self._database.clock.heard(swept.now)
            if swept.frozen:
                logger.warning("ended the locks of frozen workers %s", ", ".join(swept.frozen))
            for turn_id in swept.stops:
                attendant.stop_turn(turn_id)
            for agent_id in swept.agents:
                task = asyncio.create_task(attendant.attend(agent_id))
                self._swept.add(task)
                task.add_done_callback(self._swept.discard)
            if swept.frozen or (len(swept.agents) == room > 0):
                await asyncio.wait(self._swept, timeout=config.sweep_s) if self._swept else None
                await asyncio.sleep(0.02)
            else:
                await asyncio.sleep(config.sweep_s)

    async def _leave(self, attendant: Attendant, leaving: Leaving) -> None:
        """Stop claiming, reach the next yield points, break off what does not get there."""
        logger.info("leaving pid=%d", os.getpid())
        self._attendance.stop()
        attendant.leave()
        await _first_of(attendant.idle_within(SOFT_LEAVE_S), leaving.urgent.wait())
        if not await attendant.idle_within(0):
            attendant.break_off("leaving")
            await attendant.idle_within(HARD_LEAVE_S)

    async def _hear_stops(self) -> None:
        async with self._hints.subscribe("cancel") as heard:
            async for turn_id in heard:
                if isinstance(turn_id, bytes) and self._attendant is not None:
                    self._attendant.stop_turn(turn_id.decode())


def background_root(settings: Settings) -> Path:
    """Where the commands of this installation live that agents run in the background."""
    given = settings.config.workers.background_dir
    if given:
        return Path(given)
    return Path(tempfile.gettempdir()) / f"undivided-{os.getuid()}" / settings.namespace


def _tools(settings: Settings, outlet: Outlet) -> Tools:
    commands = (BACKGROUND_EXEC,) if settings.config.workers.background_exec else ()
    return Tools(settings.test_tools, (*messaging(outlet), *commands))


async def _first_of(*waits: object) -> None:
    tasks = [asyncio.ensure_future(wait) for wait in waits]  # type: ignore[call-overload]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
