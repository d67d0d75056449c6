"""Agents that ask people, and people who answer, by real transactions."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.races.hand import Hand, hired
from tests.races.staging import Stage
from tests.races.test_interrupts import send
from tests.support.lives import BY, create
from undivided.domain import agents as rules
from undivided.domain.agents import CreateAgent
from undivided.domain.approvals import Answer
from undivided.domain.errors import Invalid, NotFound, Rejected
from undivided.domain.events import people as p
from undivided.domain.events.items import ItemResurfaced
from undivided.domain.events.sessions import ToolCallFinished, TurnEnded
from undivided.domain.outcomes import Cancelled, Completed, TimedOut
from undivided.domain.policy import DEFAULT_POLICY
from undivided.domain.recorded import agent_stream
from undivided.store.commands import agents, approvals, sessions
from undivided.store.log import Addition, Log
from undivided.store.settings import Settings
from undivided.store.settling import settle_approvals

Call = tuple[str, dict[str, object]]


def asking(**more: object) -> Call:
    return ("request_user_approval", {"title": "Deploy?", "description": "to production", **more})


def telling(**more: object) -> Call:
    return ("notify_user", {"title": "Found it", "body": "It was the cable.", **more})


async def impatient(log: Log, **policy: Any) -> None:
    """Ada, with a policy of her own."""
    events = rules.create(DEFAULT_POLICY, CreateAgent(agent_id="ada", name="ada", policy=policy))
    await log.append([Addition(agent_stream("ada"), 0, events)], BY)


async def asked(hand: Hand, stage: Stage, **more: object) -> p.ApprovalRequested:
    """Ada's turn has asked and waits."""
    hand.model.calls = [[asking(**more)]]
    await hand.attend("ada")
    request: p.ApprovalRequested = (await stage.events(p.ApprovalRequested))[-1]
    return request


async def result(stage: Stage) -> dict[str, Any]:
    """What the model read as the result of its first call."""
    told: dict[str, Any] = json.loads((await stage.events(ToolCallFinished))[0].content)
    return told


async def due(hand: Hand) -> None:
    """Wait until a sweep finds ada."""
    async with asyncio.timeout(10):
        while await hand.sweep() != ("ada",):
            await asyncio.sleep(0.01)


class TestAsking:
    """A turn that asks a person waits, however long that takes."""

    async def test_233_the_answer_goes_to_whoever_asked(
        self, log: Log, stage: Stage, settings: Settings
    ) -> None:
        """A bell row and an event; answered, with the comment; a second answer is refused."""
        await create(log, "ada")
        await send(log, "human_chat", "deploy it", sender="bob", role="user")
        async with hired(settings) as hand:
            request = await asked(hand, stage)
            assert request.user_id == "bob"
            (told,) = await stage.events(p.NotificationPosted)
            assert (told.kind, told.approval_id) == ("approval_request", request.approval_id)
            given = Answer(True, comment="go", by="bob")
            done = await approvals.answer(hand.outlet, request.approval_id, given, BY)
            assert done.approval.phase.by == "bob"  # type: ignore[union-attr]
            assert hand.bell.rung == ["ada"]
            with pytest.raises(Rejected) as second:
                await approvals.answer(hand.outlet, request.approval_id, given, BY)
            assert second.value.code == "approval_answered"
            await hand.attend("ada")
        assert await result(stage) == {
            "status": "ok", "approved": True, "selected_option": "approve", "comment": "go",
        }  # fmt: skip
        assert [one.outcome for one in await stage.events(TurnEnded)] == [Completed("so")]
        assert len(await stage.events(p.NotificationRead)) == 1

    async def test_144_the_backstop_does_not_end_the_wait(
        self, log: Log, stage: Stage, settings: Settings
    ) -> None:
        """It has the policy's patience; afterwards goes on what was left of the backstop."""
        await impatient(log, processingTimeoutS=60, approvalWaitTimeoutS=86_400)
        await send(log, "system_event", "work")
        async with hired(settings) as hand:
            request = await asked(hand, stage)
            (waits,) = await stage.ask(
                "SELECT extract(epoch FROM wake_at - (phase->>'since')::timestamptz)::float,"
                " (phase->>'left_s')::float FROM turns"
            )
            assert waits[0] == 86_400
            assert 0 < waits[1] <= 60
            assert await hand.sweep() == ()
            await approvals.answer(hand.outlet, request.approval_id, Answer(True), BY)
            hand.model.busy.clear()
            at_work = await hand.at_the_model("ada")
            ((left,),) = await stage.ask(
                "SELECT extract(epoch FROM (phase->>'deadline')::timestamptz"
                " - clock_timestamp())::float FROM turns"
            )
            assert 0 < left <= waits[1]
            hand.model.gate.set()
            await at_work

    async def test_an_expiry_that_was_named_is_read_by_the_model(
        self, log: Log, stage: Stage, settings: Settings
    ) -> None:
        """The turn goes on without approval; whoever answers now is late."""
        await create(log, "ada")
        await send(log, "system_event", "work")
        async with hired(settings) as hand:
            request = await asked(hand, stage, expires_in_seconds=0.05)
            await due(hand)
            await hand.attend("ada")
            with pytest.raises(Rejected) as late:
                await approvals.answer(hand.outlet, request.approval_id, Answer(True), BY)
        assert late.value.code == "approval_expired"
        told = await result(stage)
        assert (told["status"], told["approved"]) == ("expired", False)
        assert [one.outcome for one in await stage.events(TurnEnded)] == [Completed("so")]
        assert len(await stage.events(p.ApprovalExpired)) == 1

    async def test_without_one_the_end_of_patience_ends_the_attempt(
        self, log: Log, stage: Stage, settings: Settings
    ) -> None:
        """The item is tried again by the rule for timeouts, and asks anew."""
        await impatient(log, approvalWaitTimeoutS=0.05, timeoutMaxRetries=0)
        await send(log, "system_event", "work")
        async with hired(settings) as hand:
            request = await asked(hand, stage)
            await due(hand)
            await hand.attend("ada")
            assert hand.model.inputs() == ["work"]
            with pytest.raises(Rejected) as late:
                await approvals.answer(hand.outlet, request.approval_id, Answer(True), BY)
        assert late.value.code == "approval_cancelled"
        (ended,) = await stage.events(TurnEnded)
        assert isinstance(ended.outcome, TimedOut)

    async def test_233_a_stop_takes_the_question_back(
        self, log: Log, stage: Stage, settings: Settings
    ) -> None:
        """Cancelled is not approved; recorded once, however often somebody answers."""
        await create(log, "ada")
        await send(log, "human_chat", "deploy it", sender="bob", role="user")
        async with hired(settings) as hand:
            request = await asked(hand, stage)
            await sessions.stop_turn(hand.outlet, request.session_id, BY)
            for _ in range(2):
                with pytest.raises(Rejected) as late:
                    await approvals.answer(hand.outlet, request.approval_id, Answer(True), BY)
                assert late.value.code == "approval_cancelled"
            await hand.attend("ada")
        assert (await result(stage))["status"] == "cancelled"
        assert len(await stage.events(p.ApprovalCancelled)) == 1
        assert [one.outcome for one in await stage.events(TurnEnded)] == [Cancelled("test")]


class TestAnswering:
    """Whoever answers is heard once, wherever the turn waits."""

    async def test_a_turn_that_was_set_aside_comes_back_with_the_answer(
        self, log: Log, stage: Stage, settings: Settings
    ) -> None:
        """A person wrote meanwhile; the answer resurfaces the item, and the turn reads it."""
        await create(log, "ada")
        await send(log, "system_event", "work")
        async with hired(settings) as hand:
            request = await asked(hand, stage)
            await send(log, "human_chat", "hello", sender="bob", role="user")
            await hand.attend("ada")
            assert hand.model.inputs() == ["work", "hello"]
            await approvals.answer(
                hand.outlet, request.approval_id, Answer(False, comment="no"), BY
            )
            (back,) = await stage.events(ItemResurfaced)
            assert (back.item_id, back.cause) == (request.item_id, "answered")
            await hand.attend("ada")
            assert hand.model.inputs() == ["work", "hello", "work"]
        told = await result(stage)
        assert (told["approved"], told["comment"]) == (False, "no")

    async def test_a_turn_that_was_set_aside_comes_back_when_its_question_expires(
        self, log: Log, stage: Stage, settings: Settings
    ) -> None:
        await create(log, "ada")
        await send(log, "system_event", "work")
        async with hired(settings) as hand:
            await asked(hand, stage, expires_in_seconds=0.2)
            await send(log, "human_chat", "hello", sender="bob", role="user")
            await hand.attend("ada")
            assert hand.model.inputs() == ["work", "hello"]
            await due(hand)
            await hand.attend("ada")
        assert (await result(stage))["status"] == "expired"

    async def test_two_people_answer_at_once(
        self, log: Log, stage: Stage, settings: Settings
    ) -> None:
        """One of them is heard, the other is told so."""
        await create(log, "ada")
        await send(log, "system_event", "work")
        async with hired(settings) as hand:
            request = await asked(hand, stage)
            answers = await asyncio.gather(
                *(
                    approvals.answer(hand.outlet, request.approval_id, Answer(yes), BY)
                    for yes in (True, False, True)
                ),
                return_exceptions=True,
            )
            assert sum(isinstance(one, Rejected) for one in answers) == 2
            await hand.attend("ada")
        assert len(await stage.events(p.ApprovalAnswered)) == 1

    async def test_what_does_not_fit_changes_nothing(
        self, log: Log, stage: Stage, settings: Settings
    ) -> None:
        """An unknown request, an unknown option, a comment where none is wanted."""
        await create(log, "ada")
        await send(log, "system_event", "work")
        options = [{"id": "a", "label": "A"}, {"id": "b", "label": "B"}]
        async with hired(settings) as hand:
            request = await asked(hand, stage, options=options, allow_freeform=False)
            for given in (Answer(True), Answer(True, "c"), Answer(True, "a", "but")):
                with pytest.raises(Invalid):
                    await approvals.answer(hand.outlet, request.approval_id, given, BY)
            with pytest.raises(NotFound):
                await approvals.answer(hand.outlet, "apr_unknown", Answer(True), BY)
            await approvals.answer(hand.outlet, request.approval_id, Answer(True, "b"), BY)
            await hand.attend("ada")
        assert (await result(stage))["selected_option"] == "b"

    async def test_a_deleted_agent_waits_for_nothing(
        self, log: Log, stage: Stage, settings: Settings
    ) -> None:
        await create(log, "ada")
        await send(log, "system_event", "work")
        async with hired(settings) as hand:
            request = await asked(hand, stage)
            await send(log, "human_chat", "hello", sender="bob", role="user")
            await hand.attend("ada")
            await agents.delete(hand.outlet, "ada", BY)
            with pytest.raises(Rejected, match="not waited for"):
                await approvals.answer(hand.outlet, request.approval_id, Answer(True), BY)


async def test_housekeeping_records_what_nobody_can_answer(
    log: Log, stage: Stage, settings: Settings
) -> None:
    """What is still waited for stays as it is, and nothing is recorded twice."""
    await create(log, "ada")
    await send(log, "system_event", "work")
    async with hired(settings) as hand:
        waits = await asked(hand, stage)
        assert await settle_approvals(log.database) == 0
        await sessions.stop_turn(hand.outlet, waits.session_id, BY)
        await hand.attend("ada")
        await send(log, "system_event", "more work")
        await asked(hand, stage, expires_in_seconds=0.05)
        await due(hand)
        assert await settle_approvals(log.database) == 2
        assert await settle_approvals(log.database) == 0
        await hand.attend("ada")
    assert len(await stage.events(p.ApprovalCancelled)) == 1
    assert len(await stage.events(p.ApprovalExpired)) == 1
