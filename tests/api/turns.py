"""Turns of agents driven by hand, as a worker would record them."""

from __future__ import annotations

from collections.abc import Sequence

from undivided.domain.dialogue import ToolCall, Usage
from undivided.domain.events import sessions as s
from undivided.domain.outcomes import Completed, Outcome
from undivided.store import landing
from undivided.store.flights import Flight
from undivided.store.log import Log
from undivided.store.takeoff import take_off

WORKER = "wrk_test"


async def begin(log: Log, agent_id: str) -> Flight:
    """Pick what is due for an agent."""
    flight = await take_off(log, agent_id, WORKER)
    assert flight is not None, f"nothing is due for {agent_id}"
    return flight


def said(flight: Flight, text: str, calls: Sequence[ToolCall] = ()) -> s.ModelResponded:
    """A model response of this turn."""
    return s.ModelResponded(
        turn_id=flight.turn.id,
        step=flight.state.responses,
        text=text,
        calls=tuple(calls),
        usage=Usage(10, 5, 0, 1),
        model="scripted",
        epoch=flight.epoch,
    )


async def use_tool(log: Log, flight: Flight, tool: str, result: str) -> None:
    """Ask for a tool, run it, record its result."""
    call = ToolCall(f"call_{flight.version}", tool, {"n": 1})
    await landing.record(log, flight, said(flight, "let me see", [call]))
    started = s.ToolCallStarted(
        turn_id=flight.turn.id,
        call_id=call.id,
        tool=tool,
        args=call.args,
        effect="pure",
        idempotency_key=call.id,
        epoch=flight.epoch,
    )
    await landing.record(log, flight, started)
    finished = s.ToolCallFinished(
        turn_id=flight.turn.id,
        call_id=call.id,
        tool=tool,
        resolution="returned",
        content=result,
        epoch=flight.epoch,
    )
    await landing.record(log, flight, finished)


async def finish(
    log: Log, flight: Flight, reply: str, outcome: Outcome | None = None
) -> Flight | None:
    """End the turn with a reply; answers the flight with its next turn, if one follows."""
    last = () if outcome is not None else (said(flight, reply),)
    then = await landing.end(log, flight, outcome or Completed(reply), last, leaving=False)
    return None if isinstance(then, landing.Rested) else then


async def whole_turn(log: Log, agent_id: str, reply: str) -> None:
    """Pick, answer, end; what follows at once is answered alike."""
    flight: Flight | None = await begin(log, agent_id)
    while flight is not None:
        flight = await finish(log, flight, reply)
