"""What can reach a turn from outside while it runs in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Literal, TypeVar

from msgspec import Struct

T = TypeVar("T")
Cause = Literal["stopped", "deadline", "leaving", "lost"]


class Broken(Struct, frozen=True):
    """A call was broken off before it answered."""

    cause: Cause


class Signals:
    """The wishes that one flight must hear; the strongest so far is `cause`.

    `turn_id` is the turn at work. `leaving` is soft: the turn goes on to its next yield point.
    Everything that `break_off` sends ends the call under way. A stop is about one turn: one that
    comes while that turn is being ended must not reach the next.
    """

    def __init__(self) -> None:
        self.leaving = False
        self.turn_id = ""
        self.cause: Cause | None = None
        self._broken = asyncio.Event()

    def turn_to(self, turn_id: str) -> None:
        """Another turn is at work now; a stop that was meant for the last one is over with it."""
        self.turn_id = turn_id
        if self.cause == "stopped":
            self.cause = None
            self._broken.clear()

    def break_off(self, cause: Cause) -> None:
        """End the call under way now; losing the flight outweighs everything else."""
        if self.cause in (None, "stopped") or cause == "lost":
            self.cause = cause
        self._broken.set()

    def broken_by(self) -> Cause:
        """What ends the call under way: a signal, or else its deadline."""
        return self.cause or "deadline"

    async def run(self, work: Coroutine[Any, Any, T], within_s: float) -> T | Broken:
        """Await `work`, unless a signal or the deadline comes first; then it is cancelled."""
        if self.cause is not None or within_s <= 0:
            work.close()
            return Broken(self.broken_by())
        task = asyncio.ensure_future(work)
        broken = asyncio.ensure_future(self._broken.wait())
        try:
            await asyncio.wait(
                {task, broken}, timeout=max(0.0, within_s), return_when=asyncio.FIRST_COMPLETED
            )
            if task.done():
                return task.result()
            return Broken(self.broken_by())
        finally:
            broken.cancel()
            if not task.done():
                task.cancel()
                await asyncio.wait({task}, timeout=5)
