"""However a deliberation ends, nothing that it considered is lost, and the agent goes on.

The log is checked afterwards: every item is somewhere, and every row is what the log says.
"""

from __future__ import annotations

import asyncio

import pytest

from tests.races.hand import hired
from tests.races.staging import Stage
from tests.races.test_deliberation import plan, several, statuses
from tests.races.test_interrupts import send
from tests.support.lives import BY, create
from undivided.api.shapes.agents import attention_state
from undivided.domain.errors import Rejected
from undivided.domain.events import sessions as s
from undivided.domain.events import triage as t
from undivided.domain.outcomes import Failed, Interrupted, TimedOut
from undivided.store.commands import agents, sessions
from undivided.store.log import Log
from undivided.store.settings import Settings


async def began(stage: Stage) -> s.TurnStarted:
    """The first turn of the history."""
    first: s.TurnStarted = (await stage.events(s.TurnStarted))[0]
    return first


async def test_while_an_agent_deliberates_it_is_deciding_and_neither_it_nor_the_session_ends(
    log: Log, stage: Stage, settings: Settings
) -> None:
    """The mind says so; its session and the agent itself are busy until the turn is over."""
    await create(log, "ada")
    ids = await several(log, 3)
    async with hired(settings) as hand:
        hand.model.calls = [plan(process_item_ids=list(ids))]
        at_work = await hand.at_the_model("ada")
        row = (await log.view("ada", 0)).agent
        assert row is not None
        assert attention_state(row) == "deciding"
        session = (await began(stage)).session_id
        with pytest.raises(Rejected, match="stop it first"):
            await sessions.end(hand.outlet, session, "archived", BY)
        with pytest.raises(Rejected, match="stop it first"):
            await sessions.end(hand.outlet, session, "deleted", BY)
        with pytest.raises(Rejected):
            await agents.delete(hand.outlet, "ada", BY)
        hand.model.gate.set()
        await at_work
        await sessions.end(hand.outlet, session, "deleted", BY)
    assert set((await statuses(stage)).values()) == {"completed"}


async def test_a_paused_agent_carries_its_plan_out_and_turns_to_nothing(
    log: Log, stage: Stage, settings: Settings
) -> None:
    """What was to be next waits until the agent is started again."""
    await create(log, "ada")
    ids = await several(log, 3)
    async with hired(settings) as hand:
        hand.model.calls = [plan(process_item_ids=[ids[1], ids[2]], drop_item_ids=[ids[0]])]
        at_work = await hand.at_the_model("ada")
        await agents.pause(hand.outlet, "ada", BY)
        hand.model.gate.set()
        await at_work
        assert await statuses(stage) == {ids[0]: "dropped", ids[1]: "queued", ids[2]: "queued"}
        await agents.start(hand.outlet, "ada", BY)
        await hand.attend("ada")
    assert set((await statuses(stage)).values()) == {"dropped", "completed"}


async def test_a_stopped_agent_loses_nothing_of_what_it_considered(
    log: Log, stage: Stage, settings: Settings
) -> None:
    """Its deliberation is interrupted; started again, it goes by order."""
    await create(log, "ada")
    await several(log, 3)
    async with hired(settings) as hand:
        at_work = await hand.at_the_model("ada")
        await agents.stop(hand.outlet, "ada", BY)
        hand.attendant.stop_turn((await began(stage)).turn_id)
        await at_work
        assert set((await statuses(stage)).values()) == {"queued"}
        hand.model.gate.set()
        await agents.start(hand.outlet, "ada", BY)
        await hand.attend("ada")
        assert hand.model.inputs()[1:] == ["work 0", "work 1", "work 2"]
    first, *_ = await stage.events(s.TurnEnded)
    assert isinstance(first.outcome, Interrupted)
    assert len(await stage.events(t.TriageBegan)) == 1


@pytest.mark.parametrize("triage", ["deliberation", "mini"])
async def test_one_that_is_never_answered_leaves_it_to_order(
    log: Log, stage: Stage, settings: Settings, triage: str
) -> None:
    """The backstop ends it as it ends any turn; nobody is told of a dead letter."""
    await create(log, "ada", triage=triage, processingTimeoutS=0.2)
    await several(log, 3)
    async with hired(settings) as hand:
        hand.model.words = {"system": "so <<HANDLE_COMPLETE>>"}
        hand.model.gate.clear()
        await hand.attend("ada")
    first, *others = await stage.events(s.TurnEnded)
    assert isinstance(first.outcome, TimedOut)
    assert len(others) == 3
    assert set((await statuses(stage)).values()) == {"completed"}
    assert await stage.ask("SELECT id FROM notices") == []


async def test_a_worker_that_leaves_lets_the_next_deliberate(
    log: Log, stage: Stage, settings: Settings
) -> None:
    """The same turn goes on elsewhere, after the step that was under way."""
    await create(log, "ada")
    ids = await several(log, 3)
    async with hired(settings) as hand:
        hand.model.calls = [[("check_mailbox", {})]]
        at_work = await hand.at_the_model("ada")
        hand.attendant.leave()
        hand.model.gate.set()
        await at_work
    async with hired(settings) as other:
        other.model.calls = [plan(process_item_ids=list(ids))]
        await other.attend("ada")
        assert [one.step for one in other.model.asked] == [1, 0]
    assert len(await stage.events(t.TriageBegan)) == 1
    assert set((await statuses(stage)).values()) == {"completed"}


async def test_one_that_loses_every_worker_is_given_up(
    log: Log, stage: Stage, settings: Settings
) -> None:
    """As any turn is after `maxDeliveryAttempts`; what it considered is done by order."""
    await create(log, "ada", maxDeliveryAttempts=2)
    await several(log, 3)
    for _ in range(2):
        async with hired(settings) as hand:
            at_work = await hand.at_the_model("ada")
            at_work.cancel()
            await asyncio.wait({at_work})
        await stage.until_free()
    async with hired(settings) as last:
        await last.attend("ada")
        assert last.model.inputs() == ["work 0", "work 1", "work 2"]
    first, *_ = await stage.events(s.TurnEnded)
    assert isinstance(first.outcome, Failed)
    assert set((await statuses(stage)).values()) == {"completed"}


async def test_a_person_is_seen_behind_many_urgent_things(
    log: Log, stage: Stage, settings: Settings
) -> None:
    """More wait than a decision names: the plan is discarded for the person all the same."""
    await create(log, "ada")
    await several(log, 14, priority=0)
    async with hired(settings) as hand:
        at_work = await hand.at_the_model("ada")
        chat = await send(log, "human_chat", "hello", sender="bob", role="user")
        hand.attendant.stop_turn((await began(stage)).turn_id)
        hand.model.gate.set()
        await at_work
    first, second = await stage.events(t.TriageBegan)
    assert chat not in first.item_ids
    assert chat in second.item_ids
    applied, *_ = await stage.events(t.TriageApplied)
    assert applied.aborted
    assert set((await statuses(stage)).values()) == {"completed"}


async def test_a_person_who_is_answered_later_calls_nobody_away(
    log: Log, stage: Stage, settings: Settings
) -> None:
    """A message that is to be tried again in an hour is no reason to stop pondering."""
    await create(log, "ada")
    async with hired(settings) as hand:
        hand.model.failing = {"chat"}
        await send(log, "human_chat", "hello", sender="bob", role="user")
        await hand.attend("ada")
    ids = await several(log, 3)
    async with hired(settings) as hand:
        hand.model.calls = [[("check_mailbox", {})], plan(process_item_ids=list(ids))]
        await hand.attend("ada")
    (applied,) = await stage.events(t.TriageApplied)
    assert not applied.aborted
