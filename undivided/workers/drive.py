"""Driving a turn: ask the model, run its tools, record every step, end.

The loop holds no truth. It asks `domain/turn.next_step` what the recorded steps call for, does
that with no transaction open, and records the answer in one. If the process dies anywhere in
between, the next worker folds the same steps and asks the same question:

- died before a response was recorded: the model is asked (again);
- died after it: the response is there and is never asked for again;
- died while a tool ran: `tool_call.started` is there without a result, and the tool's effect
  decides (run again with the same key, or answer that the outcome is unknown);
- died after the last append: the turn is over, and nothing is left to do.
"""

from __future__ import annotations

import logging
import time

from undivided.domain import turn as t
from undivided.domain.attention import Leave, kind_of
from undivided.domain.demand import invokes_model
from undivided.domain.endings import stopped_outcome
from undivided.domain.errors import Conflict, StaleFlight, Unavailable
from undivided.domain.events import sessions as s
from undivided.domain.finishing import Nudge, after_final, as_it_stands
from undivided.domain.interrupts import Weighing
from undivided.domain.outcomes import (
    Cancelled,
    Completed,
    Failed,
    Incomplete,
    Outcome,
    outcome_name,
)
from undivided.domain.policy import iterations_of
from undivided.domain.state.agent import Focused
from undivided.domain.tooling import Suspends
from undivided.store import interrupting, landing
from undivided.store.acting import Suspended
from undivided.store.flights import Flight
from undivided.store.hints import Hints
from undivided.store.log import Log
from undivided.workers.deliberating import deliberated
from undivided.workers.looking import PERSON_FIRST, CalledAway, SetAside
from undivided.workers.model import Models
from undivided.workers.signals import Signals
from undivided.workers.stepping import Landing, Steps
from undivided.workers.tools.registry import Tools

logger = logging.getLogger("undivided.turn")


class Driver:
    """Drives turns with the models, tools and log of one process."""

    def __init__(self, log: Log, models: Models, tools: Tools, hints: Hints) -> None:
        self._log, self._hints = log, hints
        self._steps = Steps(log, models, tools, hints)

    async def fly(self, flight: Flight, signals: Signals) -> bool:
        """Drive turns until the agent is let go; answers whether it may have more to do.

        Raises:
            StaleFlight, Conflict: the flight is lost. Unavailable: Postgres is away.
        """
        following: Flight | landing.Rested = flight
        while not isinstance(following, landing.Rested):
            if signals.cause == "lost":
                raise Unavailable("the flight was lost")
            flight, began = following, time.monotonic()
            signals.turn_to(flight.turn.id)
            landed, last = await self._landed(flight, signals)
            match landed:
                case Leave():
                    await landing.yield_to_others(self._log, flight)
                    return True
                case Suspended():
                    return True
                case SetAside(weighing=weighing):
                    following = await self._set_aside(flight, weighing, signals)
                case Suspends(wait=wait):
                    waiting = flight.state.open[0].call.id
                    await landing.suspend(self._log, flight, waiting, wait)
                    return True
                case CalledAway(by=by):
                    away = Cancelled(f"{PERSON_FIRST}: {by}")
                    following = await landing.end(self._log, flight, away, last, signals.leaving)
                    self._tell(flight, away, last, began)
                case _:
                    following = await landing.end(self._log, flight, landed, last, signals.leaving)
                    self._tell(flight, landed, last, began)
        return following.more

    async def _set_aside(
        self, flight: Flight, weighing: Weighing, signals: Signals
    ) -> Flight | landing.Rested:
        """Turn to what preempted the turn; or go on, if that is no longer there to turn to."""
        then = await interrupting.set_aside(self._log, flight, weighing, signals.leaving)
        self._hints.publish("tail", flight.agent.id.encode())
        match then:
            case interrupting.Moved():
                return flight
            case None:
                return landing.Rested(more=True)
            case _:
                return then

    async def _landed(
        self, flight: Flight, signals: Signals
    ) -> tuple[Landing, tuple[s.ModelResponded, ...]]:
        """Take the turn to its landing; a fault of ours is a failure of the turn, not its end."""
        try:
            return await self._turn(flight, signals)
        except (StaleFlight, Conflict, Unavailable):
            raise
        except Exception as error:
            logger.exception("turn agent=%s turn=%s broke", flight.agent.id, flight.turn.id)
            return Failed("internal", type(error).__name__, retryable=True), ()

    async def _turn(
        self, flight: Flight, signals: Signals
    ) -> tuple[Landing, tuple[s.ModelResponded, ...]]:
        """Take the turn to its landing; the final response is recorded with the end."""
        if (over := _at_once(flight)) is not None:
            return over, ()
        self._hints.publish("tail", flight.agent.id.encode())
        while True:
            limit = iterations_of(flight.agent.policy, flight.turn.scenario)
            match t.next_step(flight.state, limit):
                case t.AskModel(step=step):
                    answer = await self._steps.ask(flight, signals, step)
                    if not isinstance(answer, s.ModelResponded):
                        return _unanswered(flight.state, answer), ()
                    then = self._then(flight, answer)
                    if not isinstance(then, tuple):
                        return then, (answer,)
                    await self._steps.record(flight, answer, *then)
                case (t.RunTool() | t.AnswerUnknown() | t.EndWait()) as call:
                    broken = await self._steps.answer(flight, signals, call)
                    if broken is not None:
                        return broken, ()
                case t.Finish():
                    then = self._then(flight)
                    if not isinstance(then, tuple):
                        return then, ()
                    await self._steps.record(flight, *then)
                case t.Exhausted(requests=requests):
                    spent = Incomplete(f"max_tool_iterations: {requests} model requests")
                    return _unanswered(flight.state, spent), ()

    def _then(self, flight: Flight, *last: s.ModelResponded) -> Outcome | tuple[s.TurnNudged, ...]:
        """How the turn ends after its `last` response; or, if it goes on, with which nudge."""
        state = flight.state
        for answer in last:
            if answer.calls and self._steps.offered(flight):
                return ()
            state = t.evolve(state, answer) or state
        if flight.deliberates:
            return deliberated(flight, state)
        offered = tuple(tool.name for tool in self._steps.offered(flight))
        then = after_final(state, kind_of(flight.item), offered)
        if isinstance(then, Nudge):
            return (then.event(flight.turn.id, flight.epoch),)
        return then

    def _tell(
        self, flight: Flight, outcome: Outcome, last: tuple[s.ModelResponded, ...], began: float
    ) -> None:
        self._hints.publish("tail", flight.agent.id.encode())
        logger.info(
            "turn agent=%s turn=%s session=%s origin=%s outcome=%s responses=%d calls=%d "
            "epoch=%d wallMs=%.1f",
            flight.agent.id, flight.turn.id, flight.session.id, flight.turn.origin,
            outcome_name(outcome), flight.state.responses + len(last), flight.state.tool_calls,
            flight.epoch, (time.monotonic() - began) * 1000,
        )  # fmt: skip


def _at_once(flight: Flight) -> Outcome | None:
    """How a turn ends that asks no model, or not again."""
    focus, lost = flight.agent.attention, flight.turn.orphaned
    if isinstance(focus, Focused) and focus.stop_by is not None:
        return stopped_outcome(focus.stop_by)
    if lost >= flight.agent.policy.max_delivery_attempts:
        text = f"its worker was lost {lost} times while it ran"
        return Failed("flight_lost", text, retryable=False)
    if not flight.deliberates and not any(invokes_model(item) for item in flight.items):
        return Completed("")
    return None


def _unanswered(state: t.TurnState, landing: Landing) -> Landing:
    """Where a turn lands that got no response: one that was asked to go on has spoken already."""
    spoken = bool(state.nudges) and isinstance(landing, Failed | Incomplete)
    return as_it_stands(state) if spoken else landing
