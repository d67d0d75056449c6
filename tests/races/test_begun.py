"""Turns that were set aside, beside real turns: nothing takes their item, or their number.

And what else is not to hold an agent up: a pause, a stop in the middle of a batch of calls.
"""

from __future__ import annotations

import asyncio

from tests.races.hand import hired
from tests.races.staging import Stage
from tests.races.test_interrupts import RETURN, send, through_the_tool
from tests.support.lives import BY, begin, create, response
from undivided.domain.approvals import AskPerson
from undivided.domain.events.items import ItemMerged, ItemPicked
from undivided.domain.events.sessions import (
    ToolCallFinished,
    TurnEnded,
    TurnPreempted,
    TurnStarted,
)
from undivided.domain.outcomes import Cancelled, Completed
from undivided.store import acting, landing
from undivided.store.commands import agents
from undivided.store.log import Log
from undivided.store.settings import Settings

ASK = AskPerson(title="Go?", description="", expires_s=3600)


async def test_a_begun_item_goes_on_in_its_own_turn(
    log: Log, stage: Stage, settings: Settings
) -> None:
    """It is about the same task as the turn at work, and is not taken into that."""
    await create(log, "ada", triage="off", coalesceWindowMs=0)
    await send(log, "task_comment", "work", task="t", priority=2)
    async with hired(settings) as hand:
        hand.model.calls = [[RETURN], [], [RETURN]]
        at_work = await hand.at_the_model("ada")
        await send(log, "human_chat", "first", sender="bob", role="user")
        await send(log, "mention", "second", task="t", priority=1)
        hand.model.gate.set()
        await at_work
    started = {one.item_ids[0]: one.input for one in await stage.events(TurnStarted)}
    assert set(started.values()) == {"work", "first", "second"}
    assert await stage.events(ItemMerged) == []
    assert len(await stage.events(TurnEnded)) == 3
    assert await stage.ask("SELECT DISTINCT status FROM items") == [("completed",)]
    assert await stage.ask("SELECT DISTINCT set_aside::text FROM sessions") == [("[]",)]


async def test_a_paused_agent_is_not_preempted(log: Log, stage: Stage, settings: Settings) -> None:
    """It finishes what it is at, and picks nothing before it is started again."""
    await create(log, "ada")
    await send(log, "system_event", "work")
    async with hired(settings) as hand:
        await through_the_tool(
            hand,
            send(log, "human_chat", "hello", sender="bob", role="user"),
            agents.pause(hand.outlet, "ada", BY),
        )
        assert hand.model.inputs() == ["work", "work"]
        assert await stage.events(TurnPreempted) == []
        await agents.start(hand.outlet, "ada", BY)
        await hand.attend("ada")
        assert hand.model.inputs() == ["work", "work", "hello"]
    assert len(await stage.events(ItemPicked)) == 2


async def test_turns_of_one_session_are_numbered_one_after_the_other(
    log: Log, stage: Stage, settings: Settings
) -> None:
    """Also while one of them is set aside: here for another person's message in the same chat."""
    await create(log, "ada")
    await send(log, "human_chat", "work", sender="ann", role="user")
    flight = await begin(log, "ada")
    await landing.record(log, flight, response(flight, "", "ask"))
    assert await acting.act(log, flight, flight.state.open[0].call, ASK) is not None
    await send(log, "human_chat", "hello", sender="bob", role="user")
    async with hired(settings) as hand:
        await hand.attend("ada")
        await send(log, "human_chat", "again", sender="bob", role="user")
        await hand.attend("ada")
    started = await stage.events(TurnStarted)
    assert len({one.session_id for one in started}) == 1
    assert [(one.input, one.index) for one in started] == [("work", 0), ("hello", 1), ("again", 2)]


async def test_a_stop_comes_between_the_calls_of_a_batch(
    log: Log, stage: Stage, settings: Settings
) -> None:
    """Also where something waits that it would be set aside for: it ends, and that is next."""
    await create(log, "ada")
    await send(log, "system_event", "work")
    async with hired(settings) as hand, asyncio.timeout(20):
        hand.model.calls = [[RETURN, RETURN]]
        at_work = await hand.at_the_model("ada")
        await agents.cancel_processing(hand.outlet, "ada", BY)
        await send(log, "human_chat", "hello", sender="bob", role="user")
        hand.model.gate.set()
        await at_work
        assert hand.model.inputs() == ["work", "hello"]
    results = [one.resolution for one in await stage.events(ToolCallFinished)]
    assert results == ["returned", "skipped"]
    assert [type(one.outcome) for one in await stage.events(TurnEnded)] == [Cancelled, Completed]
