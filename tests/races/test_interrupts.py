"""What has arrived meanwhile, dealt with at real yield points by real transactions."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.races.hand import Hand, hired
from tests.races.staging import Stage
from tests.support.lives import BY, answer, begin, create
from undivided.domain import mailbox
from undivided.domain.decisions import Decision
from undivided.domain.events.items import (
    ItemDeferred,
    ItemDropped,
    ItemMerged,
    ItemPicked,
    ItemResumed,
    ItemWeighed,
    Payload,
    Sender,
)
from undivided.domain.events.sessions import (
    ToolCallFinished,
    ToolCallStarted,
    TurnEnded,
    TurnPreempted,
    TurnStarted,
    TurnUpdated,
)
from undivided.domain.interrupts import Ruling, Weighing
from undivided.domain.outcomes import Cancelled, Completed
from undivided.store import interrupting
from undivided.store.fresh import fresh_id
from undivided.store.log import Log
from undivided.store.settings import Settings

RETURN: tuple[str, dict[str, object]] = ("test_return", {"value": "x"})


async def send(log: Log, source_type: str, content: str, **given: Any) -> str:
    """Put one stimulus into ada's mailbox; answers its id."""
    command = mailbox.Accept(
        item_id=fresh_id("mbx"), source_type=source_type,
        payload=Payload(content, task_id=given.get("task"), extra=given.get("extra", {})),
        sender=Sender(given.get("sender"), None, given.get("role", "system")),
        priority=given.get("priority"), session_id=given.get("session"),
    )  # fmt: skip
    async with log.locked("ada") as tx:
        await tx.append([tx.addition(*mailbox.accept(tx.agent, (command,)))], BY)
    return command.item_id


async def through_the_tool(hand: Hand, *meanwhile: Any) -> None:
    """A turn whose first response calls a tool; `meanwhile` happens before it is given."""
    hand.model.calls = [[RETURN], *hand.model.calls]
    at_work = await hand.at_the_model("ada")
    for one in meanwhile:
        await one
    hand.model.gate.set()
    await at_work


async def test_129_132_147_preempt_and_come_back(
    log: Log, stage: Stage, settings: Settings
) -> None:
    """The preemptor runs, then the turn goes on from its last step."""
    await create(log, "ada")
    work = await send(log, "system_event", "work")
    async with hired(settings) as hand:
        await through_the_tool(hand, send(log, "human_chat", "hello", sender="bob", role="user"))
        assert hand.model.inputs() == ["work", "hello", "work"]
        assert [request.step for request in hand.model.asked] == [0, 0, 1]
    (preempted,) = await stage.events(TurnPreempted)
    first, second = await stage.events(TurnStarted)
    assert (preempted.turn_id, preempted.by) == (first.turn_id, second.item_ids[0])
    assert [one.turn_id for one in await stage.events(TurnEnded)] == [
        second.turn_id,
        first.turn_id,
    ]
    assert len(await stage.events(ToolCallStarted)) == 1
    (deferred,) = await stage.events(ItemDeferred)
    (resumed,) = await stage.events(ItemResumed)
    assert deferred.item_id == resumed.item_id == work
    assert (deferred.decision.type, deferred.decision.rule) == ("preempt", "R1")
    picks = await stage.events(ItemPicked)
    assert [pick.decision.rule for pick in picks] == ["priority_fifo", "preemptor_first"]
    assert await stage.ask("SELECT DISTINCT status FROM items") == [("completed",)]
    assert await stage.ask("SELECT DISTINCT status FROM turns") == [("ended",)]


async def test_124_rest_of_a_batch_is_skipped(log: Log, stage: Stage, settings: Settings) -> None:
    """3.7 with ruling 23: and each call still has its result."""
    await create(log, "ada")
    await send(log, "system_event", "work")
    async with hired(settings) as hand:
        slow: tuple[str, dict[str, object]] = ("test_sleep", {"seconds": 0})
        hand.model.calls = [[slow, RETURN]]
        at_work = await hand.at_the_model("ada")
        await send(log, "human_chat", "hello", sender="bob", role="user")
        hand.model.gate.set()
        await at_work
    assert [one.resolution for one in await stage.events(ToolCallFinished)] == [
        "returned",
        "skipped",
    ]
    assert await stage.ask("SELECT DISTINCT status FROM items") == [("completed",)]


async def test_125_lesser_mail_lets_a_batch_finish(
    log: Log, stage: Stage, settings: Settings
) -> None:
    """Ruling 23, the other way."""
    await create(log, "ada")
    await send(log, "system_event", "work")
    async with hired(settings) as hand:
        hand.model.calls = [[RETURN, RETURN]]
        at_work = await hand.at_the_model("ada")
        await send(log, "heartbeat", "patrol")
        hand.model.gate.set()
        await at_work
    assert [one.resolution for one in await stage.events(ToolCallFinished)] == ["returned"] * 2


async def test_096_a_comment_joins_its_task(log: Log, stage: Stage, settings: Settings) -> None:
    """As a live update behind the tool's result, once."""
    await create(log, "ada")
    work = await send(log, "system_event", "work", task="t1")
    async with hired(settings) as hand:
        comment = send(log, "task_comment", "use blue", task="t1", role="agent")
        await through_the_tool(hand, comment)
        assert hand.model.read() == [["work"], ["work", "use blue"]]
        assert hand.model.asked[1].newest_input == "use blue"
    (merged,) = await stage.events(ItemMerged)
    assert (merged.into, merged.decision.rule) == (work, "R2")
    assert [one.content for one in await stage.events(TurnUpdated)] == ["use blue"]


async def test_a_candidate_is_weighed_once(log: Log, stage: Stage, settings: Settings) -> None:
    """Ruling 16: again only when more has joined it."""
    await create(log, "ada")
    await send(log, "review_request", "work")
    async with hired(settings) as hand:
        hand.model.calls = [[RETURN], [RETURN]]
        await through_the_tool(hand, send(log, "review_request", "more"))
    weighed = await stage.events(ItemWeighed)
    assert [one.decision.type for one in weighed] == ["continue"]


async def test_128_a_chat_goes_on_to_its_end(log: Log, stage: Stage, settings: Settings) -> None:
    """What is critical is next, and was weighed."""
    await create(log, "ada")
    await send(log, "human_chat", "hello", sender="bob", role="user")
    async with hired(settings) as hand:
        await through_the_tool(hand, send(log, "human_chat", "me too", sender="eve", role="user"))
        assert hand.model.inputs() == ["hello", "hello", "me too"]
    assert [one.outcome for one in await stage.events(TurnEnded)] == [Completed("so")] * 2


async def test_112_133_the_judge_revokes(log: Log, stage: Stage, settings: Settings) -> None:
    """Cancelled for good, and what revoked it is handled."""
    await create(log, "ada")
    work = await send(log, "review_request", "work")
    async with hired(settings) as hand:
        hand.model.words = {"judge": "cancel"}
        await through_the_tool(hand, send(log, "review_request", "do not"))
    ended = await stage.events(TurnEnded)
    assert isinstance(ended[0].outcome, Cancelled)
    assert ended[1].outcome == Completed("so")
    assert await stage.ask(f"SELECT status FROM items WHERE id = '{work}'") == [("cancelled",)]  # noqa: S608


async def test_108_the_judge_puts_off(log: Log, stage: Stage, settings: Settings) -> None:
    """Deferred without a time: it comes back once the agent is idle."""
    await create(log, "ada")
    await send(log, "review_request", "work")
    async with hired(settings) as hand:
        hand.model.words = {"judge": "defer"}
        await through_the_tool(hand, send(log, "review_request", "later"))
        assert hand.model.inputs() == ["work", "work", "later"]
    (deferred,) = await stage.events(ItemDeferred)
    assert (deferred.by, deferred.wait_s) == ("judge", None)


async def test_a_candidate_that_is_gone_interrupts_nothing(log: Log, stage: Stage) -> None:
    """Whoever took it between the look and the lock: the turn keeps the focus."""
    await create(log, "ada")
    await send(log, "system_event", "work")
    flight = await begin(log, "ada")
    chat = await send(log, "human_chat", "hello", sender="bob", role="user")
    (seen,) = await interrupting.candidates(log, flight)
    weighing = Weighing(seen, Ruling("preempt", "R1"), ())
    gone = ItemDropped(
        agent_id="ada", item_id=chat, reason="test",
        decision=Decision("dec_x", "drop", "test", "test", {}, 1),
    )  # fmt: skip
    async with log.locked("ada") as tx:
        await tx.append([tx.addition(gone)], BY)
    assert await interrupting.set_aside(log, flight, weighing, leaving=False) == (
        interrupting.Moved()
    )
    await interrupting.merge(log, flight, weighing)
    await interrupting.put_off(log, flight, weighing)
    await interrupting.pass_over(log, flight, weighing)
    assert await stage.events(TurnPreempted) == []
    assert await stage.events(ItemMerged) == []
    assert await answer(log, flight, "done") is None


async def test_a_dead_worker_leaves_what_was_set_aside(
    log: Log, stage: Stage, settings: Settings
) -> None:
    """The preempted turn goes on with whoever comes next."""
    await create(log, "ada")
    await send(log, "system_event", "work")
    async with hired(settings) as first:
        first.model.calls = [[RETURN]]
        at_work = await first.at_the_model("ada")
        await send(log, "human_chat", "hello", sender="bob", role="user")
        first.model.gate.set()
        async with asyncio.timeout(10):
            while not await stage.events(TurnPreempted):
                await asyncio.sleep(0.01)
        at_work.cancel()
        await asyncio.gather(at_work, return_exceptions=True)
    async with hired(settings) as second:
        await second.attend("ada")
    assert len(await stage.events(ToolCallStarted)) == 1
    assert await stage.ask("SELECT DISTINCT status FROM items") == [("completed",)]
