"""A turn about several items ends for all of them, whatever becomes of them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.town import Town
from undivided.domain import agents, mailbox
from undivided.domain.attention import Begin
from undivided.domain.endings import Ending, fates_of
from undivided.domain.events.items import Payload
from undivided.domain.outcomes import Cancelled, Completed, Failed, Interrupted, Outcome
from undivided.domain.policy import DEFAULT_POLICY
from undivided.domain.state.agent import Idle
from undivided.domain.state.item import Queued


@pytest.mark.parametrize(
    "outcome", [Completed("so"), Cancelled("eve"), Interrupted("stop"), Failed("no", "", False)]
)
def test_what_waits_is_counted_right(outcome: Outcome) -> None:
    """Nobody counts what was in the turn as if it had waited."""
    town = Town()
    town.write(*agents.create(DEFAULT_POLICY, agents.CreateAgent(agent_id="ada", name="ada")))
    commands = tuple(
        mailbox.Accept(item_id=name, source_type="system_event", payload=Payload(name))
        for name in ("one", "two", "three")
    )
    town.write(*mailbox.accept(town.agent("ada"), commands))
    first, second, third = town.view("ada").queue
    began, turn_id = town._opening(town.agent("ada"), Begin(first, (third,), siblings=(second,)), 1)
    town.write(*began)
    items = tuple(town.rows["items", one] for one in ("one", "two"))
    names = tuple((f"dec_{n}", f"ntf_{n}") for n in range(2))
    fates = fates_of(town.agent("ada"), items, outcome, Ending(turn_id, 1, names))
    ends: list[Any] = [event for one in fates for event in one.events]
    town.write(*ends)
    agent = town.agent("ada")
    assert isinstance(agent.attention, Idle)
    assert agent.waiting == sum(isinstance(one.phase, Queued) for one in town.items("ada"))
