"""What a deliberation may use, and when it has said its last word."""

from __future__ import annotations

from typing import TypedDict

from undivided.domain import mini_triage
from undivided.domain.events import sessions as s
from undivided.domain.finishing import Nudge, reply_of
from undivided.domain.mini_triage import MAX_TOKENS, MINI_TOOLS, MINI_TRIAGE, TEMPERATURE
from undivided.domain.outcomes import Completed
from undivided.domain.turn import PLANNED, TurnState
from undivided.store.flights import Flight
from undivided.workers.tools.tool import Tool


def offered(flight: Flight, tools: tuple[Tool, ...]) -> tuple[Tool, ...]:
    """Those of `tools` that the next request offers; a mini triage only looks, and not for long."""
    if flight.turn.origin != MINI_TRIAGE:
        return tools
    if not mini_triage.of_turn(flight.state, _candidates(flight)).may_look:
        return ()
    return tuple(tool for tool in tools if tool.name in MINI_TOOLS)


class Sampling(TypedDict, total=False):
    """How a request is to be answered, where that matters."""

    temperature: float
    max_tokens: int


def sampling(flight: Flight) -> Sampling:
    """A mini triage wants a short and sober answer; anything else what the profile says."""
    if flight.turn.origin != MINI_TRIAGE:
        return {}
    return {"temperature": TEMPERATURE, "max_tokens": MAX_TOKENS}


def deliberated(flight: Flight, state: TurnState) -> Completed | tuple[s.TurnNudged, ...]:
    """How a deliberation ends after its last response; or the one correction that it is asked for.

    Whatever it has said, its plan decides; without one order does.
    """
    if flight.turn.origin == MINI_TRIAGE:
        wrong = mini_triage.nudged(state, _candidates(flight))
        if wrong is not None:
            return (Nudge("items_forgotten", wrong).event(flight.turn.id, flight.epoch),)
    plan = state.plan
    planned = plan.reasoning.strip() or PLANNED if plan is not None else ""
    return Completed(planned or reply_of(state))


def _candidates(flight: Flight) -> tuple[str, ...]:
    return tuple(item.id for item in flight.considered)
