"""What time and processes bring back, looked for every second by every worker.

Two workers may see the same wakeup or the same ended process. Both decide under the lock of the
agent, on the row as it is then: the second finds it delivered, and does nothing.
"""

from __future__ import annotations

import asyncio
import logging
import socket

from undivided.domain.callbacks import Ended
from undivided.domain.errors import Unavailable
from undivided.store.commands import callbacks
from undivided.store.commands.outlet import Outlet
from undivided.workers.background.processes import Processes

logger = logging.getLogger("undivided.timers")


class Timers:
    """The timers of one worker process, which looks after the processes of its host."""

    def __init__(self, outlet: Outlet, processes: Processes) -> None:
        self._outlet, self._processes, self._host = outlet, processes, socket.gethostname()

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
        """Deliver what is there to be delivered."""
        log = self._outlet.log
        for row in await callbacks.due_wakeups(log):
            await callbacks.fire(self._outlet, row)
        for row in await callbacks.running_on(log, self._host):
            match self._processes.look(row, log.database.clock.now()):
                case "startable":
                    await self._processes.start(row)
                case "running":
                    pass
                case Ended() as ended:
                    if await callbacks.complete(self._outlet, row, ended):
                        self._processes.forget(row)
