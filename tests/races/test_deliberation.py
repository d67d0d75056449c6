"""Triage by real workers: an agent considers what waits, and its plan is carried out.

The log is checked afterwards: every item is somewhere, and every row is what the log says.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.races.hand import hired
from tests.races.staging import Stage
from tests.races.test_interrupts import send
from tests.support.lives import BY, create
from undivided.domain.coordinates import parse_coordinate
from undivided.domain.events import sessions as s
from undivided.domain.events import triage as t
from undivided.domain.events.items import (
    ItemCompleted,
    ItemDeferred,
    ItemDropped,
    ItemPicked,
)
from undivided.domain.outcomes import Cancelled, Completed, Failed
from undivided.domain.plans import Plan
from undivided.domain.why.story import tell
from undivided.store.commands.sessions import stop_turn
from undivided.store.log import Log
from undivided.store.queries.items import item
from undivided.store.queries.reading import Reading
from undivided.store.queries.why import why
from undivided.store.settings import Settings


async def results(stage: Stage) -> list[dict[str, Any]]:
    return [json.loads(one.content) for one in await stage.events(s.ToolCallFinished)]


async def test_an_agent_manages_its_mailbox(log: Log, stage: Stage, settings: Settings) -> None:
    """173, 175: what it does takes effect with the call's result."""
    await create(log, "ada", triage="off")
    await send(log, "review_request", "work")
    later = await send(log, "system_event", "later", priority=3)
    stale = await send(log, "system_event", "stale", priority=3)
    extra = {"triggerExecution": True}
    kept = await send(log, "task_status_update", "go", priority=3, extra=extra)
    async with hired(settings) as hand:
        hand.model.calls = [
            [
                ("check_mailbox", {}),
                ("defer_mailbox_item", {"item_id": later, "reason": "no", "defer_minutes": 600}),
                ("drop_mailbox_item", {"item_id": stale, "reason": "old"}),
                ("drop_mailbox_item", {"item_id": stale, "reason": "old"}),
                ("drop_mailbox_item", {"item_id": kept, "reason": "no"}),
                ("drop_mailbox_item", {"item_id": "mbx_unknown", "reason": "no"}),
            ]
        ]
        await hand.attend("ada")
    looked, *told = await results(stage)
    assert (looked["status"], looked["queueDepth"]) == ("ok", 3)
    assert looked["currentFocus"]["label"] == "Review Request"
    assert [one["id"] for one in looked["items"]] == [later, stale, kept]
    assert [one["type"] for one in looked["recentDecisions"]] == ["pick"]
    assert [one["status"] for one in told] == [
        "deferred", "dropped", "already_resolved", "error", "already_resolved",
    ]  # fmt: skip
    (deferred,) = await stage.events(ItemDeferred)
    assert (deferred.item_id, deferred.wait_s) == (later, 36_000)
    assert [one.item_id for one in await stage.events(ItemDropped)] == [stale]
    assert dict(await stage.ask("SELECT id, status FROM items"))[kept] == "completed"


async def several(log: Log, number: int = 5, **given: Any) -> tuple[str, ...]:
    """Things that wait, none more urgent than the others."""
    return tuple([await send(log, "system_event", f"work {n}", **given) for n in range(number)])


def plan(**args: Any) -> list[tuple[str, dict[str, object]]]:
    """The response that completes a deliberation."""
    return [("complete_deliberation", args)]


async def statuses(stage: Stage) -> dict[str, str]:
    return dict(await stage.ask("SELECT id, status FROM items"))


async def test_165_157_160_a_plan_is_checked_and_carried_out(
    log: Log, stage: Stage, settings: Settings
) -> None:
    """Refused with what it forgot, then recorded and applied: a batch is one turn."""
    await create(log, "ada")
    ids = await several(log)
    async with hired(settings) as hand:
        hand.model.calls = [
            plan(process_item_id=ids[1]),
            plan(
                process_item_ids=[ids[1], ids[2]], defer_item_ids=[ids[3]], reasoning="so",
                inline_completed_ids=[ids[4]], drop_item_ids=[ids[0]], batch_context="as one",
                memory_updates=[{"key": "a", "content": "1"}, {"key": "b", "content": "2"}],
            ),
        ]  # fmt: skip
        await hand.attend("ada")
        assert [one.scenario for one in hand.model.asked[:3]] == [
            "deliberation", "deliberation", "system",
        ]  # fmt: skip
        batch = hand.model.asked[2].newest_input
    assert all(text in batch for text in ("[BATCH] 2 items", "as one", "work 1", "work 2"))
    (refused, recorded) = [one.content for one in await stage.events(s.ToolCallFinished)]
    assert json.loads(refused)["orphaned"] == [ids[2], ids[3], ids[4]]
    assert recorded == "recorded"
    (planned,) = await stage.events(s.DeliberationPlanned)
    assert isinstance(planned.plan, Plan)
    considered, together, later = await stage.events(s.TurnEnded)
    assert (considered.item_ids, considered.outcome) == ((ids[4],), Completed("so"))
    assert together.item_ids == (ids[1], ids[2])
    assert later.item_ids == (ids[3],)
    assert await statuses(stage) == {
        ids[0]: "dropped", **dict.fromkeys(ids[1:], "completed"),
    }  # fmt: skip
    inline = [one for one in await stage.events(ItemCompleted) if one.item_id == ids[4]]
    assert [one.turn_id for one in inline] == [considered.turn_id]
    kept = dict(await stage.ask("SELECT key, content FROM memories"))
    assert (kept["a"], kept["b"]) == ("1", "2")


async def test_167_an_applied_plan_is_one_decision(
    log: Log, stage: Stage, settings: Settings
) -> None:
    """Of type `triage`; there is no pick beside it."""
    await create(log, "ada")
    ids = await several(log, 3)
    async with hired(settings) as hand:
        hand.model.calls = [plan(process_item_ids=list(ids), reasoning="all")]
        await hand.attend("ada")
    decided = await stage.ask("SELECT type, item_id, rule FROM decisions ORDER BY version, id")
    assert decided[0] == ("triage", ids[0], "deliberation")
    assert {kind for kind, *_ in decided[1:]} == {"complete"}
    (applied,) = await stage.events(t.TriageApplied)
    picks = await stage.events(ItemPicked)
    assert {one.decision.id for one in picks} == {applied.decision.id}
    ((last,),) = await stage.ask("SELECT last_triage FROM agents")
    assert (last["primary"], last["batch"]) == (ids[0], list(ids[1:]))
    for one in ids:  # whoever looks back, or asks why, finds what no decision of its own names
        now = await item(Reading(log.database), one)
        then = await item(Reading(log.database, parse_coordinate(now.position)), one)
        assert then.item == now.item
        told = [line.kind for line in tell(await why(Reading(log.database), one))]
        assert "picked" in told


async def test_151_153_order_alone_says_what_is_best(
    log: Log, stage: Stage, settings: Settings
) -> None:
    """One that waits alone, one with less urgent beside it, a person before anything."""
    await create(log, "ada")
    await send(log, "system_event", "first", priority=1)
    await send(log, "system_event", "second", priority=2)
    await send(log, "human_chat", "hello", sender="bob", role="user")
    async with hired(settings) as hand:
        await hand.attend("ada")
        assert hand.model.inputs() == ["hello", "first", "second"]
    assert await stage.events(t.TriageBegan) == []


async def test_152_two_of_one_priority_are_considered(
    log: Log, stage: Stage, settings: Settings
) -> None:
    """Without a plan the head is next, and what was considered in vain is not again."""
    await create(log, "ada")
    await several(log, 3)
    async with hired(settings) as hand:
        await hand.attend("ada")
        assert [one.scenario for one in hand.model.asked] == [
            "deliberation", "system", "system", "system",
        ]  # fmt: skip
        assert hand.model.inputs()[1:] == ["work 0", "work 1", "work 2"]
    (applied,) = await stage.events(t.TriageApplied)
    assert applied.decision.rule == "without_plan"


@pytest.mark.parametrize("left", ["nothing", "half", "failure"])
async def test_a_deliberation_that_comes_to_nothing_leaves_it_to_order(
    log: Log, stage: Stage, settings: Settings, left: str
) -> None:
    """It never answers usefully, or the model fails: no item is lost or left at work."""
    await create(log, "ada")
    ids = await several(log, 3)
    async with hired(settings) as hand:
        if left == "half":
            wrong = [plan(), plan(process_item_id="mbx_unknown"), plan(process_item_ids=[1, {}])]
            twice = plan(
                process_item_id=ids[0], defer_item_ids=[ids[1], ids[2]], drop_item_ids=[ids[1]]
            )
            hand.model.calls = [*wrong, twice]
        if left == "failure":
            hand.model.failing = {"deliberation"}
        await hand.attend("ada")
    assert set((await statuses(stage)).values()) == {"completed"}
    considered, *_ = await stage.events(s.TurnEnded)
    assert isinstance(considered.outcome, Failed if left == "failure" else Completed)
    assert await stage.events(s.DeliberationPlanned) == []


async def test_163_164_a_person_ends_a_deliberation_in_mid_call(
    log: Log, stage: Stage, settings: Settings
) -> None:
    """The plan is discarded, the person is first, and the former head still waits."""
    await create(log, "ada")
    ids = await several(log, 3)
    async with hired(settings) as hand:
        at_work = await hand.at_the_model("ada")
        await send(log, "a2a_message", "not for this", role="agent")
        chat = await send(log, "human_chat", "hello", sender="bob", role="user")
        hand.attendant.stop_turn((await stage.events(s.TurnStarted))[0].turn_id)
        hand.model.gate.set()
        await at_work
        assert hand.model.inputs()[1] == "hello"
    first, *_ = await stage.events(t.TriageApplied)
    assert (first.aborted, first.primary) == (True, ids[0])
    began = await stage.events(s.TurnStarted)
    assert began[1].item_ids == (chat,)
    assert set((await statuses(stage)).values()) == {"completed"}


async def test_164_what_was_done_inline_stays_done(
    log: Log, stage: Stage, settings: Settings
) -> None:
    """A person writes between the plan and its end: only what is dealt with counts."""
    await create(log, "ada")
    ids = await several(log, 3)
    async with hired(settings) as hand:
        hand.model.calls = [
            plan(process_item_id=ids[0], drop_item_ids=[ids[1]], inline_completed_ids=[ids[2]])
        ]
        at_work = await hand.at_the_model("ada")
        await send(log, "human_chat", "hello", sender="bob", role="user")
        hand.model.gate.set()
        await at_work
    first, *_ = await stage.events(t.TriageApplied)
    assert (first.aborted, first.inline, first.dropped) == (True, (ids[2],), ())
    assert (await statuses(stage))[ids[1]] == "completed"


async def test_159_what_is_protected_waits_whatever_the_plan_says(
    log: Log, stage: Stage, settings: Settings
) -> None:
    """What starts a task and what names the agent is neither put off nor discarded."""
    await create(log, "ada")
    head = await send(log, "system_event", "head", priority=2)
    starts = await send(
        log, "task_status_update", "go", priority=2, extra={"triggerExecution": True}
    )
    names = await send(log, "mention", "@ada", priority=2, extra={"directMention": True})
    async with hired(settings) as hand:
        hand.model.calls = [
            plan(process_item_id=head, defer_item_ids=[starts], drop_item_ids=[names])
        ]
        await hand.attend("ada")
    assert await statuses(stage) == dict.fromkeys((head, starts, names), "completed")
    assert await stage.events(ItemDeferred) == []
    assert await stage.events(ItemDropped) == []


async def test_a_killed_worker_leaves_the_deliberation_to_the_next(
    log: Log, stage: Stage, settings: Settings
) -> None:
    """The same turn goes on; what was answered is not asked again."""
    await create(log, "ada")
    ids = await several(log, 3)
    async with hired(settings) as hand:
        hand.model.calls = [[("check_mailbox", {})]]
        at_work = await hand.at_the_model("ada")
        hand.model.gate.set()
        hand.model.gate.clear()
        hand.model.busy.clear()
        await hand.model.busy.wait()
        at_work.cancel()
        await asyncio.wait({at_work})
    await stage.until_free()
    async with hired(settings) as other:
        other.model.calls = [plan(process_item_ids=list(ids))]
        await other.attend("ada")
        assert [one.step for one in other.model.asked] == [1, 0]
    assert len(await stage.events(t.TriageBegan)) == 1
    assert set((await statuses(stage)).values()) == {"completed"}


async def test_a_stopped_deliberation_leaves_it_to_order(
    log: Log, stage: Stage, settings: Settings
) -> None:
    """The cancel button: nothing is lost, and the agent does not begin to ponder again."""
    await create(log, "ada")
    await several(log, 3)
    async with hired(settings) as hand:
        at_work = await hand.at_the_model("ada")
        (began,) = await stage.events(s.TurnStarted)
        outlet = hand.outlet
        await stop_turn(outlet, began.session_id, BY)
        hand.attendant.stop_turn(began.turn_id)
        hand.model.gate.set()
        await at_work
        assert hand.model.inputs()[1:] == ["work 0", "work 1", "work 2"]
    (first, *_) = await stage.events(s.TurnEnded)
    assert isinstance(first.outcome, Cancelled)
    assert len(await stage.events(t.TriageBegan)) == 1


async def test_119_only_a_person_ends_a_deliberation(
    log: Log, stage: Stage, settings: Settings
) -> None:
    """However urgent other things are: between two steps it looks up for people alone."""
    await create(log, "ada")
    await several(log, 3)
    async with hired(settings) as hand:
        hand.model.calls = [[("check_mailbox", {})]]
        at_work = await hand.at_the_model("ada")
        await send(log, "system_event", "urgent", priority=0)
        hand.model.gate.set()
        await at_work
        assert [one.scenario for one in hand.model.asked[:2]] == ["deliberation"] * 2
    first, *_ = await stage.events(t.TriageApplied)
    assert not first.aborted
    async with hired(settings) as hand:
        await several(log, 3)
        hand.model.calls = [[("check_mailbox", {})]]
        at_work = await hand.at_the_model("ada")
        await send(log, "human_chat", "hello", sender="bob", role="user")
        hand.model.gate.set()
        await at_work
        assert hand.model.inputs()[1] == "hello"
    *_, aborted, _ = await stage.events(t.TriageApplied)
    assert aborted.aborted


async def test_168_a_burst_is_one_item_before_anything_is_considered(
    log: Log, stage: Stage, settings: Settings
) -> None:
    """Two messages of a channel have joined, so that there is nothing to choose."""
    await create(log, "ada", coalesceWindowMs=0)
    channel = {"channelKey": "dm:a2a:ada:bob"}
    for text in ("first", "second"):
        await send(log, "a2a_message", text, role="agent", sender="bob", extra=channel)
    async with hired(settings) as hand:
        await hand.attend("ada")
        (request,) = hand.model.asked
    assert "first" in request.newest_input
    assert "second" in request.newest_input
    assert await stage.events(t.TriageBegan) == []


async def test_a_batch_that_is_stopped_is_counted_right(
    log: Log, stage: Stage, settings: Settings
) -> None:
    """All its items are cancelled with it, and none of those that wait."""
    await create(log, "ada")
    ids = await several(log, 3)
    async with hired(settings) as hand:
        hand.model.calls = [
            plan(process_item_ids=list(ids)), [("test_return", {"value": "x"})],
        ]  # fmt: skip
        at_work = await hand.at_the_model("ada")
        hand.model.gate.set()
        hand.model.gate.clear()
        hand.model.busy.clear()
        await hand.model.busy.wait()
        later = await send(log, "heartbeat", "later")
        _, batch = await stage.events(s.TurnStarted)
        await stop_turn(hand.outlet, batch.session_id, BY)
        hand.model.gate.set()
        await at_work
    assert await statuses(stage) == {**dict.fromkeys(ids, "cancelled"), later: "completed"}
    assert await stage.ask("SELECT waiting, attention_state FROM agents") == [(0, "idle")]
