"""A queue put in order before anything is picked from it, by real transactions."""

from __future__ import annotations

import asyncio

import pytest

from tests.races.hand import hired
from tests.races.staging import Stage
from tests.races.test_interrupts import send
from tests.support.lives import BY, begin, create
from undivided.domain.decisions import Decision
from undivided.domain.deliberation_prompt import ITEMS_TOLD
from undivided.domain.events.items import (
    ItemDeferred,
    ItemDropped,
    ItemExpired,
    ItemMerged,
    ItemPicked,
    ItemResurfaced,
    NoticePosted,
)
from undivided.domain.events.sessions import TurnStarted
from undivided.domain.events.triage import TriageBegan
from undivided.store.log import Log
from undivided.store.settings import Settings


async def test_48_what_is_about_one_task_is_one_item_whatever_its_types(
    log: Log, stage: Stage, settings: Settings
) -> None:
    """What needs the model takes in the news, never the other way round."""
    await create(log, "ada", coalesceWindowMs=0)
    news = await send(log, "task_status_update", "it failed", task="t1")
    review = await send(log, "review_request", "have a look", task="t1", priority=2)
    async with hired(settings) as hand:
        await hand.attend("ada")
        (told,) = hand.model.inputs()
    assert "have a look" in told
    assert "it failed" in told
    (merged,) = await stage.events(ItemMerged)
    assert (merged.item_id, merged.into, merged.priority) == (news, review, 1)
    assert merged.decision.rule == "consolidate_task"
    assert await stage.events(TriageBegan) == []


async def test_59_what_has_lost_its_point_goes(log: Log, stage: Stage, settings: Settings) -> None:
    """News that waited too long; a person's message and a result do not age."""
    await create(log, "ada", staleAfterS=0)
    old = await send(log, "daily_report", "yesterday")
    result = await send(log, "callback_result", "exit 0")
    chat = await send(log, "human_chat", "hello", role="user", sender="bob")
    async with hired(settings) as hand:
        await hand.attend("ada")
        assert hand.model.inputs() == ["hello", "exit 0"]
    assert [one.item_id for one in await stage.events(ItemDropped)] == [old]
    assert {one.item_id for one in await stage.events(ItemPicked)} == {chat, result}


async def test_what_nobody_got_to_is_given_up_and_told_once(
    log: Log, stage: Stage, settings: Settings
) -> None:
    """With one notice each, in the same append."""
    await create(log, "ada", queuedTtlS=0)
    ids = [await send(log, "system_event", f"work {n}") for n in range(2)]
    async with hired(settings) as hand:
        await hand.attend("ada")
        await hand.attend("ada")
        assert hand.model.asked == []
    expired = await stage.events(ItemExpired)
    assert sorted(one.item_id for one in expired) == sorted(ids)
    notices = {one.notice_id: one.item_id for one in await stage.events(NoticePosted)}
    assert notices == {one.notice_id: one.item_id for one in expired}
    assert await stage.ask("SELECT waiting, attention_state FROM agents") == [(0, "idle")]


async def test_what_came_back_is_not_old(log: Log) -> None:
    """Behind a long queue too: it waits since then."""
    await create(log, "ada")
    await send(log, "system_event", "at work")
    epoch = (await begin(log, "ada")).epoch
    stayed = await send(log, "system_event", "one")
    back = await send(log, "system_event", "two")
    why = Decision("dec_1", "defer", "as_asked", "later", {}, 1)
    off = ItemDeferred(
        agent_id="ada", item_id=back, epoch=epoch, by="agent", decision=why, wait_s=0
    )  # fmt: skip
    async with log.locked("ada") as tx:
        await tx.append([tx.addition(off)], BY)
    async with log.locked("ada") as tx:
        until = tx.view.now
        due = ItemResurfaced(agent_id="ada", item_id=back, cause="due")
        await tx.append([tx.addition(due)], BY)
    async with log.locked("ada") as tx:
        assert [one.id for one in await tx.queued_before(until, 10)] == [stayed]
        assert [one.id for one in await tx.queued_before(tx.view.now, 10)] == [stayed, back]


@pytest.mark.parametrize("also", [0, 1])
async def test_what_is_old_is_found_behind_a_long_queue(
    log: Log, stage: Stage, settings: Settings, also: int
) -> None:
    """However many wait before it."""
    await create(log, "ada", staleAfterS=0, triage="off")
    old = await send(log, "memory_consolidation", "long ago", priority=4)
    for n in range(ITEMS_TOLD + also):
        await send(log, "system_event", f"work {n}")
    async with hired(settings) as hand:
        at_work = await hand.at_the_model("ada")
        assert [one.item_id for one in await stage.events(ItemDropped)] == [old]
        at_work.cancel()
        await asyncio.wait({at_work})


async def test_a_turn_that_ends_leaves_the_order_to_the_next_look(
    log: Log, stage: Stage, settings: Settings
) -> None:
    """What came meanwhile is joined before it is picked."""
    await create(log, "ada", coalesceWindowMs=0)
    await send(log, "system_event", "first")
    async with hired(settings) as hand:
        at_work = await hand.at_the_model("ada")
        await send(log, "task_status_update", "news", task="t1", priority=2)
        await send(log, "review_request", "look", task="t1", priority=2)
        hand.model.gate.set()
        await at_work
        assert len(hand.model.asked) == 2
    assert len(await stage.events(TurnStarted)) == 2
