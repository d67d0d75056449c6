"""What time and processes bring back, looked for every second by every worker.

Two workers may see the same wakeup or the same ended process. Both decide under the lock of the
agent, on the row as it is then: the second finds it delivered, and does nothing.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Awaitable

from undivided.domain.callbacks import Ended
from undivided.domain.errors import Unavailable, Undivided
from undivided.domain.state.callback import CallbackRow
from undivided.store.commands import callbacks
from undivided.store.commands.outlet import Outlet
from undivided.workers.background.processes import Processes
from undivided.workers.beats import Beats

logger = logging.getLogger("undivided.timers")

PAGES_AT_ONCE = 20
"""Pages of due wakeups that one look delivers."""
CLEANED_EVERY_S = 60.0


class Timers:
    """The timers of one worker process, which looks after the processes of its host."""

    def __init__(self, outlet: Outlet, processes: Processes) -> None:
        self._outlet, self._processes, self._host = outlet, processes, socket.gethostname()
        self._beats, self._clean_at = Beats(outlet), 0.0

    async def run(self, every_s: float) -> None:
        """Look every so many seconds, until cancelled; a database that is away is waited for."""
        while True:
            try:
                await self.tick()
            except Unavailable as error:
                logger.warning("timers put off: %s", error)
            except Exception:
                logger.exception("timers broke; they are looked at again")
            await asyncio.sleep(every_s)

    async def tick(self) -> None:
        """Deliver what is there; what fails for one agent keeps no other waiting."""
        await self._wake()
        for kept in await callbacks.running_on(self._outlet.log, self._host):
            look = self._give_up if kept.abandoned else self._look_after
            await self._try(kept.row, look(kept.row))
        await self._beats.look()
        await self._clean()

    async def _wake(self) -> None:
        """Deliver the wakeups that are due; an agent that takes one not is left for the next look.

        So many pages and no more: an agent that wants to be woken every second is due again and
        again, and there are processes and beats to look after.
        """
        log, put_off = self._outlet.log, set[str]()
        for _ in range(PAGES_AT_ONCE):
            rows = await callbacks.due_wakeups(log, put_off)
            for row in rows:
                if row.agent_id in put_off:
                    continue
                if not await self._try(row, callbacks.fire(self._outlet, row)):
                    put_off.add(row.agent_id)
            if len(rows) < callbacks.AT_ONCE:
                return

    async def _look_after(self, row: CallbackRow) -> bool:
        now = self._outlet.log.database.clock.now()
        match self._processes.look(row, now):
            case "startable":
                await self._processes.start(row, now)
                return True
            case "running":
                return False
            case Ended() as ended:
                return await callbacks.complete(self._outlet, row, ended)

    async def _give_up(self, row: CallbackRow) -> bool:
        """End a process that nobody would hear of; it is closed once it is over."""
        now = self._outlet.log.database.clock.now()
        match self._processes.look(row, now):
            case "running":
                self._processes.end(row)
                return False
            case "startable" if not self._processes.withhold(row, now):
                return False
            case _:
                return await callbacks.abandon(self._outlet, row)

    async def _clean(self) -> None:
        """Now and then, remove the traces of processes whose callbacks are closed."""
        if time.monotonic() < self._clean_at:
            return
        self._clean_at = time.monotonic() + CLEANED_EVERY_S
        log = self._outlet.log
        for row in await callbacks.closed(log, self._processes.traced()):
            self._processes.forget(row, log.database.clock.now())

    async def _try(self, row: CallbackRow, work: Awaitable[bool]) -> bool:
        """Whether the work did anything."""
        try:
            return await work
        except (Undivided, OSError) as error:
            logger.warning("callback=%s agent=%s put off: %s", row.id, row.agent_id, error)
            return False
