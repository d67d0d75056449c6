"""Attending to an agent: take it, do what is due, let it go.

`attend` is idempotent and carries nothing but the agent's id: called too often it finds
nothing to do, called too seldom the sweep calls it.

Why no wake-up is lost between the end of a turn and the release of its lock: an acceptance in
that gap finds the agent idle and rings; whoever answers cannot take the lock yet, but sees
that no flight holds the agent, and tries again until the lock is free.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging

from undivided.domain.errors import Conflict, NotFound, StaleFlight, Unavailable, Undivided
from undivided.domain.state.agent import Focused
from undivided.store import landing
from undivided.store.doorbell import Doorbell
from undivided.store.flights import Flight
from undivided.store.locks import LockConnection
from undivided.store.log import Log
from undivided.store.takeoff import take_off
from undivided.workers.drive import Driver
from undivided.workers.signals import Cause, Signals

logger = logging.getLogger("undivided.attend")
_PATIENCE_S = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128)


class Attendant:
    """Attends to agents on one lock connection, for as long as that is not lost."""

    def __init__(self, log: Log, locks: LockConnection, driver: Driver, doorbell: Doorbell) -> None:
        self._log, self._locks, self._driver, self._doorbell = log, locks, driver, doorbell
        self._flights: dict[str, Signals] = {}
        self._leaving = False
        self._attending = 0
        self._idle = asyncio.Event()
        self._idle.set()

    async def idle_within(self, seconds: float) -> bool:
        """Wait until nobody is attended to here; answers whether that came to be.

        Whoever is only just being taken counts too: closing the lock connection meanwhile
        would orphan a turn that has hardly begun.
        """
        if not self._idle.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._idle.wait(), seconds)
        return self._idle.is_set()

    async def attend(self, agent_id: str) -> None:
        """Do whatever is due for an agent, if nobody else does."""
        if not self._leaving and not self._locks.lost.is_set():
            self._attending += 1
            self._idle.clear()
            try:
                await self._attend(agent_id)
            finally:
                self._attending -= 1
                if self._attending == 0:
                    self._idle.set()
        if self.leaving():
            self._doorbell.ring([agent_id])

    async def _attend(self, agent_id: str) -> None:
        try:
            if await self._take(agent_id):
                try:
                    await self._work(agent_id)
                finally:
                    await self._locks.release(agent_id)
        except (Unavailable, NotFound, Conflict) as error:
            logger.warning("attend agent=%s given up: %s", agent_id, error)
        except Exception:
            logger.exception("attend agent=%s broke; the sweep tries again", agent_id)

    def leaving(self) -> bool:
        """Whether this worker claims nothing more."""
        return self._leaving

    def stop_turn(self, turn_id: str) -> None:
        """A person asked this turn to stop: break off its call, if it runs here."""
        for signals in self._flights.values():
            if signals.turn_id == turn_id:
                signals.break_off("stopped")

    def leave(self) -> None:
        """Claim nothing more; every turn goes on to its next yield point."""
        self._leaving = True
        for signals in self._flights.values():
            signals.leaving = True

    def break_off(self, cause: Cause) -> None:
        """End every call under way."""
        for signals in self._flights.values():
            signals.break_off(cause)

    async def _take(self, agent_id: str) -> bool:
        for pause_s in _PATIENCE_S:
            if await self._locks.try_acquire(agent_id):
                return True
            view = await self._log.view(agent_id, 1)
            if view.agent is None:
                return False
            if isinstance(view.agent.attention, Focused) and view.flight and view.flight.held:
                return False  # somebody is at work, and sees at its end what has arrived
            await asyncio.sleep(pause_s)
        return False

    async def _work(self, agent_id: str) -> None:
        more = True
        while more and not self._leaving:
            flight = await take_off(self._log, agent_id, self._locks.worker_id)
            if flight is None:
                return
            signals = Signals()
            signals.leaving = self._leaving
            self._flights[agent_id] = signals
            try:
                more = await self._driver.fly(flight, signals)
            except (StaleFlight, Conflict) as error:
                more = False
                await self._fence(flight, error)
            except Unavailable as error:
                await self._give_up(flight, error)
                raise
            finally:
                del self._flights[agent_id]

    async def _give_up(self, flight: Flight, error: Undivided) -> None:
        """A flight that was lost with the lock connection; if it is another's by now, say so."""
        if self._locks.lost.is_set():
            current = (await self._log.view(flight.agent.id, 1)).flight
            if current is not None and current.epoch > flight.epoch:
                await self._fence(flight, error)

    async def _fence(self, flight: Flight, error: Undivided) -> None:
        logger.warning(
            "fenced agent=%s turn=%s epoch=%d: %s",
            flight.agent.id, flight.turn.id, flight.epoch, error,
        )  # fmt: skip
        await landing.fenced(self._log, flight, self._locks.worker_id, (error.code,))
