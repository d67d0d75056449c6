"""Looking up from a turn at its yield points: was it asked to stop, what has arrived meanwhile.

Before each model request but the first, whatever waits and was not weighed against this turn yet
is weighed; before each further call of a batch only whether the rest is to be skipped. The look
costs one round trip while nothing waits.
"""

from __future__ import annotations

import logging

from msgspec import Struct

from undivided.domain.attention import GoOn, Halt, Leave, at_yield_point, session_for
from undivided.domain.deliberation_prompt import ITEMS_TOLD
from undivided.domain.endings import stopped_outcome
from undivided.domain.interrupts import (
    OTHERWISE,
    STREAMED,
    Pair,
    Ruling,
    Weighing,
    honoured,
    judged,
    left_waiting,
    skips_rest,
    weigh,
)
from undivided.domain.outcomes import Cancelled, Outcome
from undivided.domain.state.agent import AgentRow
from undivided.domain.state.item import ItemRow
from undivided.domain.state.view import AgentView
from undivided.domain.triage import called_away
from undivided.store import interrupting
from undivided.store.flights import Flight
from undivided.store.log import Log
from undivided.workers.judge import Judge
from undivided.workers.signals import Signals

logger = logging.getLogger("undivided.turn")
AT_ONCE = 12
"""Candidates that one yield point deals with at most."""


class SetAside(Struct, frozen=True):
    """The turn is set aside for what was weighed."""

    weighing: Weighing


class CalledAway(Struct, frozen=True):
    """A deliberation ends because a person wrote, in item `by`."""

    by: str


PERSON_FIRST = "person_first"


class Looking:
    """Looks up from turns, with the log and the judge of one process."""

    def __init__(self, log: Log, judge: Judge) -> None:
        self._log, self._judge = log, judge

    async def up(
        self, flight: Flight, signals: Signals, step: int
    ) -> Outcome | Leave | SetAside | CalledAway | None:
        """The look before a model request; None if the turn goes on here."""
        if step == 0 and flight.turn.flights == 1:
            return Leave() if signals.leaving else None
        view = await self._view(flight)
        if view.agent is None:
            return None
        match at_yield_point(view.agent, flight.turn.id, signals.leaving):
            case Halt(by=by):
                return stopped_outcome(by)
            case Leave():
                return Leave()
            case GoOn():
                pass
        flight.agent = view.agent
        if flight.deliberates:
            return _called_away(flight, view)
        return await self._attend(flight, signals) if view.agent.waiting > 0 else None

    async def stopped(self, flight: Flight) -> Outcome | CalledAway:
        """Why a call was broken off: a person asked the turn to stop, or calls it away."""
        view = await self._view(flight)
        focus = view.agent.attention if view.agent else None
        by = getattr(focus, "stop_by", None)
        away = _called_away(flight, view) if by is None and flight.deliberates else None
        return away or stopped_outcome(by or "a person")

    async def before_call(self, flight: Flight) -> Outcome | SetAside | CalledAway | None:
        """The look between two calls of a batch: whether the rest is skipped."""
        view = await self._view(flight)
        if view.agent is None:
            return None
        match at_yield_point(view.agent, flight.turn.id, draining=False):
            case Halt(by=by):
                return stopped_outcome(by)
        if view.agent.waiting == 0:
            return None
        if flight.deliberates:
            return _called_away(flight, view)
        if view.agent.lifecycle != "started":
            return None
        pairs = _pairs(view.agent, flight, await interrupting.candidates(self._log, flight))
        if not skips_rest(pairs, flight.turn.scenario):
            return None
        weighing = weigh(pairs)
        return None if weighing is None else SetAside(weighing)

    async def _view(self, flight: Flight) -> AgentView:
        """The agent as it is now; a deliberation sees as much of the queue as it considers."""
        return await self._log.view(flight.agent.id, ITEMS_TOLD if flight.deliberates else 0)

    async def _attend(self, flight: Flight, signals: Signals) -> Outcome | SetAside | None:
        """Deal with what has arrived, until the turn goes on or not."""
        for _ in range(AT_ONCE):
            found = await interrupting.candidates(self._log, flight)
            pairs = _pairs(flight.agent, flight, found)
            weighing = weigh(pairs)
            if weighing is None:
                return None
            if passed := left_waiting(pairs, self._judge.sits(flight)):
                await interrupting.pass_over(self._log, flight, *passed)
                return None
            asked = weighing.ruling == OTHERWISE
            if asked:
                weighing = await self._asked(flight, signals, weighing)
            landed = await self._done(flight, weighing)
            if landed is not None or weighing.ruling.verdict == "continue":
                return landed
        return None

    async def _asked(self, flight: Flight, signals: Signals, weighing: Weighing) -> Weighing:
        """What the judge says where the rules say nothing."""
        verdict = await self._judge.verdict(flight, signals, weighing)
        if verdict is None:
            return weighing
        (pair,) = _pairs(flight.agent, flight, (weighing.candidate,))
        return Weighing(weighing.candidate, judged(pair, verdict), weighing.others)

    async def _done(self, flight: Flight, weighing: Weighing) -> Outcome | SetAside | None:
        streamed = bool(flight.item.payload.extra.get(STREAMED))
        # A paused agent finishes what it is at, and turns to nothing else.
        rests = weighing.ruling.verdict == "preempt" and flight.agent.lifecycle != "started"
        if rests or not honoured(flight.turn.scenario, streamed, weighing.ruling):
            left = Ruling("continue", weighing.ruling.rule)
            await interrupting.pass_over(
                self._log, flight, Weighing(weighing.candidate, left, weighing.others)
            )
            return None
        match weighing.ruling.verdict:
            case "continue":
                await interrupting.pass_over(self._log, flight, weighing)
            case "merge":
                await interrupting.merge(self._log, flight, weighing)
            case "defer":
                await interrupting.put_off(self._log, flight, weighing)
            case "preempt":
                return SetAside(weighing)
            case "cancel":
                await interrupting.pass_over(self._log, flight, weighing)
                return Cancelled(f"{weighing.ruling.rule}: {weighing.candidate.id}")
        return None


def _called_away(flight: Flight, view: AgentView) -> CalledAway | None:
    """Whether a person wrote since the deliberation began."""
    person = called_away(view.queue, tuple(item.id for item in flight.considered))
    return None if person is None else CalledAway(person.id)


def _pairs(agent: AgentRow, flight: Flight, found: tuple[ItemRow, ...]) -> tuple[Pair, ...]:
    focus = (flight.item, flight.session.id)
    return tuple(Pair.of(focus, (item, session_for(agent, item)), agent.policy) for item in found)
