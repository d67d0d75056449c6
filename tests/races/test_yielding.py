"""Yield points: what a real turn does about what arrives, with a judge and without one.

The numbers are those of the scenarios in the behaviour catalogue.
"""

from __future__ import annotations

import asyncio

import pytest

from tests.races.hand import hired
from tests.races.staging import Stage
from tests.races.test_interrupts import RETURN, send, through_the_tool
from tests.races.test_stops import stop
from tests.support.lives import create
from undivided.domain.dialogue import ModelReply, ModelRequest
from undivided.domain.errors import ModelFailed
from undivided.domain.events.flights import StopRequested
from undivided.domain.events.items import (
    ItemCancelled,
    ItemDeferred,
    ItemMerged,
    ItemPicked,
    ItemWeighed,
)
from undivided.domain.events.sessions import TurnEnded, TurnPreempted, TurnUpdated
from undivided.domain.interrupts import STREAMED
from undivided.domain.outcomes import Cancelled, Completed
from undivided.domain.scenarios import JUDGE
from undivided.store.log import Log
from undivided.store.settings import Settings
from undivided.workers import judge as judging

DONE = [("completed",)]


async def weighed(stage: Stage) -> list[tuple[str, str]]:
    """What was ruled about whom, and by which rule."""
    return [(one.decision.type, one.decision.rule) for one in await stage.events(ItemWeighed)]


class TestNothingNew:
    """The turn goes on, and nothing is written about it."""

    async def test_113_123_no_decision(self, log: Log, stage: Stage, settings: Settings) -> None:
        """Neither at a yield point nor where the agent is idle."""
        await create(log, "ada")
        await send(log, "system_event", "work")
        async with hired(settings) as hand:
            await through_the_tool(hand)
            await hand.attend("ada")
        assert await weighed(stage) == []
        assert len(await stage.events(ItemPicked)) == 1
        assert await stage.events(TurnPreempted) == []

    async def test_125_lesser_mail_waits(self, log: Log, stage: Stage, settings: Settings) -> None:
        """It is weighed, and handled behind the turn."""
        await create(log, "ada")
        await send(log, "a2a_message", "work", priority=1)
        async with hired(settings) as hand:
            await through_the_tool(hand, send(log, "heartbeat", "patrol"))
            assert hand.model.inputs() == ["work", "work", "patrol"]
        assert await stage.events(TurnPreempted) == []


class TestTheJudge:
    """It is asked where the rules say `continue`, and only there."""

    async def judged(self, log: Log, settings: Settings, word: str) -> list[str]:
        """A review at work while another arrives, and a judge of one word; the inputs."""
        await create(log, "ada")
        await send(log, "review_request", "work")
        async with hired(settings) as hand:
            hand.model.words = {JUDGE: word}
            await through_the_tool(hand, send(log, "review_request", "new"))
            return hand.model.inputs()

    async def test_111_it_is_not_asked_where_a_rule_preempts(
        self, log: Log, stage: Stage, settings: Settings
    ) -> None:
        """Whatever it would say."""
        await create(log, "ada")
        await send(log, "heartbeat", "patrol")
        async with hired(settings) as hand:
            hand.model.words = {JUDGE: "cancel"}
            await through_the_tool(hand, send(log, "human_chat", "hi", sender="b", role="user"))
        assert ("preempt", "R1") in await weighed(stage)
        assert "judge" not in [rule for _, rule in await weighed(stage)]

    async def test_107_without_one_the_rules_decide(self, log: Log, settings: Settings) -> None:
        """A judge that answers nothing at all leaves what the rules said."""
        await create(log, "ada")
        await send(log, "heartbeat", "patrol")
        async with hired(settings) as hand:
            await through_the_tool(hand, send(log, "human_chat", "hi", sender="b", role="user"))
            assert hand.model.inputs() == ["patrol", "hi", "patrol"]

    async def test_it_preempts(self, log: Log, stage: Stage, settings: Settings) -> None:
        """The turn is set aside for what it read, and comes back."""
        assert await self.judged(log, settings, "preempt") == ["work", "new", "work"]
        assert ("preempt", "judge") in await weighed(stage)

    async def test_it_merges(self, log: Log, stage: Stage, settings: Settings) -> None:
        """The message goes into the turn."""
        assert await self.judged(log, settings, "merge") == ["work", "new"]
        (merged,) = await stage.events(ItemMerged)
        assert merged.decision.rule == "judge"
        assert [one.content for one in await stage.events(TurnUpdated)] == ["new"]

    @pytest.mark.parametrize("word", ["continue", "delegate", "drop", '{"decision": "can', "", "?"])
    async def test_109_nonsense_lets_the_turn_go_on(
        self, log: Log, stage: Stage, settings: Settings, word: str
    ) -> None:
        """And so does a word that is reserved (ruling 26), or none."""
        assert await self.judged(log, settings, word) == ["work", "work", "new"]
        assert [what for what, _ in await weighed(stage)] == ["continue"]
        assert await stage.ask("SELECT DISTINCT status FROM items") == DONE

    @pytest.mark.parametrize("never", [True, False])
    async def test_109_117_one_that_fails_or_never_answers(
        self, log: Log, stage: Stage, settings: Settings, monkeypatch: pytest.MonkeyPatch,
        never: bool,
    ) -> None:  # fmt: skip
        """The rules' word stands, and the turn is not held up for longer than its patience."""
        monkeypatch.setattr(judging, "PATIENCE_S", 0.05)
        await create(log, "ada")
        await send(log, "review_request", "work")
        async with hired(settings) as hand:
            answering = hand.model.complete

            async def complete(request: ModelRequest, on_delta: object) -> ModelReply:
                if request.scenario != JUDGE:
                    return await answering(request, on_delta)  # type: ignore[arg-type]
                if never:
                    await asyncio.Event().wait()
                raise ModelFailed("server_error", "no judge today")

            hand.model.complete = complete  # type: ignore[method-assign]
            await through_the_tool(hand, send(log, "review_request", "new"))
            assert hand.model.inputs() == ["work", "work", "new"]
        assert await weighed(stage) == [("continue", "otherwise")]
        assert await stage.ask("SELECT DISTINCT status FROM items") == DONE

    async def test_115_put_off_and_then_preempted(
        self, log: Log, stage: Stage, settings: Settings
    ) -> None:
        """The second interrupt is dealt with by itself: the last word counts for the turn."""
        await create(log, "ada")
        await send(log, "review_request", "work")
        async with hired(settings) as hand:
            hand.model.words = {JUDGE: "defer"}
            hand.model.calls = [[RETURN], [RETURN]]
            at_work = await hand.at_the_model("ada")
            later = await send(log, "review_request", "later")
            asked, answering = 0, hand.model.complete

            async def complete(request: ModelRequest, on_delta: object) -> ModelReply:
                nonlocal asked
                asked += request.scenario != JUDGE
                if asked == 1 and request.scenario != JUDGE:
                    await send(log, "human_chat", "hi", sender="bob", role="user")
                return await answering(request, on_delta)  # type: ignore[arg-type]

            hand.model.complete = complete  # type: ignore[method-assign]
            hand.model.gate.set()
            await at_work
            assert hand.model.inputs() == ["work", "work", "hi", "work", "later"]
        deferred = await stage.events(ItemDeferred)
        assert [one.by for one in deferred] == ["judge", "preempted"]
        assert deferred[0].item_id == later
        assert await stage.ask("SELECT DISTINCT status FROM items") == DONE

    async def test_116_133_it_cancels(self, log: Log, stage: Stage, settings: Settings) -> None:
        """What was at work is over for good; nobody handles it again."""
        assert await self.judged(log, settings, "cancel") == ["work", "new"]
        cancelled = await stage.events(ItemCancelled)
        assert [one.decision.type for one in cancelled] == ["cancel"]
        assert len(await stage.events(ItemPicked)) == 2


class TestTheCancelButton:
    """A person ends the turn at work."""

    async def test_120_the_next_yield_point_ends_it(
        self, log: Log, stage: Stage, settings: Settings
    ) -> None:
        """By that person; without a turn the wish is not kept for the next one."""
        await create(log, "ada")
        await stop(log, "ada", "bob")
        assert await stage.events(StopRequested) == []
        await send(log, "system_event", "work")
        async with hired(settings) as hand:
            await through_the_tool(hand, stop(log, "ada", "bob"))
            assert hand.model.inputs() == ["work"]
            await send(log, "system_event", "more")
            await hand.attend("ada")
        assert [one.outcome for one in await stage.events(TurnEnded)] == [
            Cancelled("bob"),
            Completed("so"),
        ]


async def test_121_what_was_not_weighed_yet_is_weighed_next(
    log: Log, stage: Stage, settings: Settings
) -> None:
    """A worker that leaves takes no signal with it: whoever resumes the turn sees the mail."""
    await create(log, "ada")
    await send(log, "system_event", "work")
    async with hired(settings) as first:
        first.model.calls = [[RETURN]]
        at_work = await first.at_the_model("ada")
        await send(log, "human_chat", "hi", sender="bob", role="user")
        at_work.cancel()
        await asyncio.gather(at_work, return_exceptions=True)
    async with hired(settings) as second:
        await second.attend("ada")
        assert second.model.inputs()[0] == "hi"
    assert ("preempt", "R1") in await weighed(stage)
    assert await stage.ask("SELECT DISTINCT status FROM items") == DONE


@pytest.mark.parametrize(("extra", "inputs"), [({STREAMED: True}, 2), ({}, 3)])
async def test_127_a_streamed_chat_is_cancelled(
    log: Log, stage: Stage, settings: Settings, extra: dict[str, bool], inputs: int
) -> None:
    """By the judge; one that nobody watches goes on to its end."""
    await create(log, "ada")
    chat = await send(log, "human_chat", "hello", sender="bob", role="user", extra=extra)
    async with hired(settings) as hand:
        hand.model.words = {JUDGE: "cancel"}
        await through_the_tool(hand, send(log, "human_chat", "do not", sender="eve", role="user"))
        assert len(hand.model.inputs()) == inputs
    status = "cancelled" if extra else "completed"
    assert await stage.ask("SELECT status FROM items WHERE id = %s", chat) == [(status,)]
