"""Turns that were set aside, and what else can happen to them meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.races.hand import Hand, hired
from tests.races.staging import Stage
from tests.races.test_interrupts import RETURN, send
from tests.support.lives import BY, begin, create, response
from undivided.domain.approvals import AskPerson
from undivided.domain.errors import Rejected
from undivided.domain.events.flights import FocusAnswered
from undivided.domain.events.items import ItemCancelled, ItemResurfaced
from undivided.domain.events.sessions import ToolCallFinished, TurnEnded, TurnStarted
from undivided.domain.outcomes import Cancelled, Completed
from undivided.store import acting, landing
from undivided.store.commands import agents, sessions
from undivided.store.log import Log
from undivided.store.settings import Settings


@asynccontextmanager
async def preempted(
    log: Log, stage: Stage, settings: Settings
) -> AsyncIterator[tuple[Hand, str, asyncio.Task[None]]]:
    """Work was set aside for a person, whose turn is at the model now; and the work's session."""
    await create(log, "ada")
    await send(log, "system_event", "work")
    async with hired(settings) as hand:
        hand.model.calls = [[RETURN]]
        at_work = await hand.at_the_model("ada")
        await send(log, "human_chat", "hello", sender="bob", role="user")
        hand.model.busy.clear()
        hand.model.gate.set()  # whoever waits goes on, and the next one waits again
        hand.model.gate.clear()
        await hand.model.busy.wait()
        first = (await stage.events(TurnStarted))[0]
        yield hand, first.session_id, at_work


async def test_it_can_be_stopped(log: Log, stage: Stage, settings: Settings) -> None:
    """It comes back only to end, and asks no model for that."""
    async with preempted(log, stage, settings) as (hand, session_id, at_work):
        await sessions.stop_turn(hand.outlet, session_id, BY)
        hand.model.gate.set()
        await at_work
        assert hand.model.inputs() == ["work", "hello"]
    assert [one.outcome for one in await stage.events(TurnEnded)] == [
        Completed("so"),
        Cancelled("test"),
    ]


async def test_its_session_is_kept(log: Log, stage: Stage, settings: Settings) -> None:
    """It cannot be archived under it."""
    async with preempted(log, stage, settings) as (hand, session_id, at_work):
        with pytest.raises(Rejected, match="set aside"):
            await sessions.end(hand.outlet, session_id, "archived", BY)
        hand.model.gate.set()
        await at_work
        await sessions.end(hand.outlet, session_id, "archived", BY)


async def test_it_ends_with_its_agent(log: Log, stage: Stage, settings: Settings) -> None:
    """Deletion ends it, its item and its open calls."""
    async with preempted(log, stage, settings) as (hand, _session, at_work):
        await agents.pause(hand.outlet, "ada", BY)
        hand.model.gate.set()
        await at_work
        await agents.delete(hand.outlet, "ada", BY)
    (cancelled,) = await stage.events(ItemCancelled)
    assert cancelled.by == "agent deletion"
    assert await stage.ask("SELECT DISTINCT status FROM turns") == [("ended",)]
    assert await stage.ask("SELECT waiting, deferred FROM agents") == [(0, 0)]


async def test_a_turn_that_waits_for_a_person_gives_way(
    log: Log, stage: Stage, settings: Settings
) -> None:
    """A message passes it; lesser mail does not, and is weighed once. Its answer brings it back."""
    await create(log, "ada")
    work = await send(log, "system_event", "work")
    flight = await begin(log, "ada")
    await landing.record(log, flight, response(flight, "", "ask"))
    call_id = flight.state.open[0].call.id
    asked = AskPerson(
        title="Go?", description="", options=(), allow_freeform=True, priority="high",
        task_id=None, expires_s=3600, target=None,
    )  # fmt: skip
    assert await acting.act(log, flight, flight.state.open[0].call, asked) is not None
    async with hired(settings) as hand:
        await send(log, "heartbeat", "patrol")
        assert await hand.sweep() == ("ada",)
        await hand.attend("ada")
        assert await hand.sweep() == ()
        await send(log, "human_chat", "hello", sender="bob", role="user")
        await hand.attend("ada")
        assert hand.model.inputs() == ["hello", "patrol"]
        answered = FocusAnswered(
            agent_id="ada", turn_id=flight.turn.id, call_id=call_id, content="yes", item_id=work
        )
        back = ItemResurfaced(agent_id="ada", item_id=work, cause="answered")
        async with log.locked("ada") as tx:
            await tx.append([tx.addition(answered, back)], BY)
        await hand.attend("ada")
        assert hand.model.inputs() == ["hello", "patrol", "work"]
    (result,) = await stage.events(ToolCallFinished)
    assert (result.resolution, result.content) == ("answered", "yes")
    assert await stage.ask("SELECT DISTINCT status FROM items") == [("completed",)]
