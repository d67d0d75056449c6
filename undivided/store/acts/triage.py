"""Completing a deliberation: its plan is checked against what still waits of what it considered."""

from __future__ import annotations

from undivided.domain.events.sessions import DeliberationPlanned
from undivided.domain.planning import CompleteDeliberation, Refusal, planned
from undivided.domain.state.agent import Focused
from undivided.store.acts.doing import Doing, Done, refused
from undivided.store.deliberating import considered
from undivided.store.flights import Flight
from undivided.store.log import AgentTx


async def _complete(tx: AgentTx, flight: Flight, act: CompleteDeliberation) -> Done:
    focus = tx.agent.attention
    if not isinstance(focus, Focused) or focus.mode != "deliberating":
        return refused(Refusal(error="there is no deliberation to complete").text)
    if flight.state.plan is not None:
        return refused(Refusal(error="this deliberation is complete already").text)
    plan = planned(act.args, await considered(tx, focus.considered))
    if isinstance(plan, Refusal):
        return refused(plan.text)
    step = DeliberationPlanned(turn_id=flight.turn.id, plan=plan, epoch=flight.epoch)
    return Done(content="recorded", steps=(step,))


COMPLETING = Doing(_complete)
