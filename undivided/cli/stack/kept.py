"""A part of the stack that is kept alive: what dies is started again, with growing pauses."""

from __future__ import annotations

import asyncio
import signal
from asyncio.subprocess import Process
from collections.abc import Awaitable, Callable

from undivided.cli.stack.spawn import Mistake, end

Tell = Callable[[str], None]

_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 5.0
_HEALTHY_S = 10.0


class Kept:
    """One process of the stack; `name` is what logs call it, `kind` where run.json lists it."""

    def __init__(self, kind: str, name: str, start: Callable[[], Awaitable[Process]]) -> None:
        self.kind = kind
        self.name = name
        self._start = start
        self._process: Process | None = None

    @property
    def pid(self) -> int:
        """The id of the newest process."""
        return self._process.pid if self._process else 0

    @property
    def returncode(self) -> int | None:
        """How the newest process ended, None while it runs."""
        return self._process.returncode if self._process else None

    async def begin(self) -> None:
        """Start it for the first time; what prevents that is raised."""
        self._process = await self._start()

    async def keep(self, tell: Tell, changed: Callable[[], None]) -> None:
        """Start it again whenever it ends, until cancelled."""
        pause = _FIRST_PAUSE_S
        clock = asyncio.get_running_loop().time
        while self._process is not None:
            since = clock()
            code = await self._process.wait()
            pause = _FIRST_PAUSE_S if clock() - since > _HEALTHY_S else pause
            tell(f"{self.name} ended ({_how(code)}); starting it again")
            pause = await self._again(pause, tell)
            changed()

    async def _again(self, pause: float, tell: Tell) -> float:
        while True:
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_S)
            try:
                self._process = await self._start()
            except (Mistake, OSError) as error:
                tell(f"{self.name} does not start: {error}")
            else:
                return pause

    async def stop(self, polite: signal.Signals, patience_s: float) -> None:
        """Stop it for good; the task that keeps it must have been cancelled before."""
        if self._process is not None:
            await end(self._process, polite, patience_s)


def _how(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit {code}"
