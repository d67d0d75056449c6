"""What an agent's own tools change: decided and recorded with the result of the call.

An act is decided under the agent's row lock by a function of its own in `acts/`, and its events
stand in one transaction with `tool_call.finished`. So a crash before it has changed nothing, and
after it nothing is done again: no act needs an effect of its own.
"""

from __future__ import annotations

from typing import Any

from undivided.domain.dialogue import ToolCall
from undivided.domain.events import flights as f
from undivided.domain.events import sessions as s
from undivided.domain.tooling import Act, Suspends
from undivided.store.acts.table import ACTS
from undivided.store.flights import QUEUE_SEEN, Flight
from undivided.store.log import Log


async def act(log: Log, flight: Flight, call: ToolCall, wanted: Act) -> Suspended | None:
    """Decide and record an act, and the call's result; `Suspended` if the turn waits for it.

    Raises:
        StaleFlight, Conflict: the flight is lost; nothing was written.
    """
    doing: Any = ACTS[type(wanted)]
    async with log.locked(flight.agent.id, QUEUE_SEEN, doing.also(flight, wanted)) as tx:
        done = await doing.decide(tx, flight, wanted)
        turn_id, epoch = flight.turn.id, flight.epoch
        if done.wait is None:
            mine = done.events
            step: s.ToolCallFinished | s.TurnSuspended = s.ToolCallFinished(
                turn_id=turn_id, call_id=call.id, tool=call.tool,
                resolution="raised" if done.failed else "returned", content=done.content,
                epoch=epoch,
            )  # fmt: skip
        else:
            wait_s = max(0.0, done.wait.seconds)
            suspended = f.FocusSuspended(
                agent_id=flight.agent.id, turn_id=turn_id, epoch=epoch, wait=done.wait,
                wait_s=wait_s,
            )  # fmt: skip
            released = f.FlightReleased(agent_id=flight.agent.id, epoch=epoch, reason="suspended")
            mine = (*done.events, suspended, released)
            step = s.TurnSuspended(
                turn_id=turn_id, call_id=call.id, wait=done.wait, wait_s=wait_s, epoch=epoch
            )
        additions = [flight.session_events(*done.steps, step), *done.elsewhere]
        if mine:
            additions.insert(0, tx.addition(*mine))
        known = flight.known(tx.view.edition)
        appended = await tx.append(additions, flight.meta, flight.fence, known)
    if mine:
        flight.remembered = None
    flight.agent = appended.rows.get(("agents", flight.agent.id), flight.agent)
    flight.advance(appended)
    return Suspended(done.wait) if done.wait is not None else None


class Suspended(Suspends, frozen=True):
    """The turn waits, and that is recorded already."""
