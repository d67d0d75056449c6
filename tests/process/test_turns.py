"""How turns wait, and how they end, in a real worker."""

from __future__ import annotations

import json

import pytest

from tests.process.crew import BY, Crew, call
from undivided.domain.events.items import ItemPicked, ItemRequeued, NoticePosted
from undivided.domain.events.sessions import (
    ModelResponded,
    ToolCallFinished,
    ToolCallStarted,
    TurnEnded,
    TurnResumed,
    TurnSuspended,
)
from undivided.domain.outcomes import EMPTY_REPLY, Cancelled, Completed, Incomplete, TimedOut
from undivided.store.commands.sessions import stop_turn
from undivided.workers.tools.running import RESULT_LIMIT

pytestmark = [pytest.mark.process, pytest.mark.asyncio(loop_scope="module")]


class TestWaiting:
    """A turn that waits holds nothing, and goes on where it stood."""

    async def test_until_its_time(self, at_work: Crew) -> None:
        """The sweep finds the timer; the call is answered once."""
        rest = call("sleep", seconds=0.5)
        await at_work.agent("tim", {"step": 0, "calls": [rest]}, {"step": 1, "reply": "rested"})
        (item,) = await at_work.send("tim", "rest")
        await at_work.over(item)
        (resumed,) = await at_work.events(TurnResumed, "tim")
        assert resumed.cause == "waited"
        (result,) = await at_work.events(ToolCallFinished, "tim")
        assert result.resolution == "waited"
        assert len(await at_work.events(ToolCallStarted, "tim")) == 1

    async def test_until_something_new_comes(self, at_work: Crew) -> None:
        """The model is told what kind of thing woke it, and not what it says."""
        rest = call("sleep", seconds=3600)
        await at_work.agent(
            "eva", {"contains": "second", "reply": "and you"},
            {"step": 0, "calls": [rest]}, {"step": 1, "reply": "awake"},
        )  # fmt: skip
        (first,) = await at_work.send("eva", "rest")
        await at_work.recorded(TurnSuspended, agent="eva")
        (second,) = await at_work.send("eva", "the second", session_id="apart")
        await at_work.over(first, second)
        (result,) = await at_work.events(ToolCallFinished, "eva")
        assert result.resolution == "woken"
        assert "human_chat" in result.content
        assert "the second" not in result.content
        ended = [one.outcome for one in await at_work.events(TurnEnded, "eva")]
        assert ended == [Completed("awake"), Completed("and you")]

    async def test_until_it_is_stopped(self, at_work: Crew) -> None:
        """The wait is answered, and no model is asked again."""
        await at_work.agent("rip", {"step": 0, "calls": [call("sleep", seconds=3600)]})
        (item,) = await at_work.send("rip", "rest")
        await at_work.recorded(TurnSuspended, agent="rip")
        await stop_turn(at_work.outlet, "ses_rip", BY)
        await at_work.over(item)
        assert await at_work.status(item) == "cancelled"
        assert len(await at_work.events(ModelResponded, "rip")) == 1
        (result,) = await at_work.events(ToolCallFinished, "rip")
        assert result.resolution == "skipped"


class TestEndings:
    """Each ending, with what it means for the item."""

    async def test_a_stop_breaks_off_a_model_call(self, at_work: Crew) -> None:
        """C79: nobody waits for the answer."""
        await at_work.agent("abe", {"delay": 3600})
        (item,) = await at_work.send("abe", "hello")
        await at_work.attention("abe", "focused")
        await stop_turn(at_work.outlet, "ses_abe", BY)
        await at_work.over(item)
        (ended,) = await at_work.events(TurnEnded, "abe")
        assert ended.outcome == Cancelled("test")

    async def test_a_stop_breaks_off_a_tool(self, at_work: Crew) -> None:
        """The call that was under way has a result all the same."""
        nap = call("test_sleep", seconds=3600)
        await at_work.agent("zed", {"step": 0, "calls": [nap]})
        (item,) = await at_work.send("zed", "hello")
        await at_work.recorded(ToolCallStarted, agent="zed")
        await stop_turn(at_work.outlet, "ses_zed", BY)
        await at_work.over(item)
        (result,) = await at_work.events(ToolCallFinished, "zed")
        assert result.resolution == "interrupted"

    async def test_the_backstop(self, at_work: Crew) -> None:
        """C79: a model that never answers; the item is tried again, and then is over."""
        await at_work.agent("bea", {"delay": 3600}, processingTimeoutS=0.4, timeoutMaxRetries=1)
        first, second = await at_work.send("bea", "hello", "are you there")
        await at_work.over(first, second)
        ended = [one.outcome for one in await at_work.events(TurnEnded, "bea")]
        assert ended == [TimedOut(0.4)] * 4
        assert [one.reason for one in await at_work.events(ItemRequeued, "bea")] == [
            "timed_out",
            "timed_out",
        ]
        await at_work.attention("bea", "idle")

    async def test_empty_replies(self, at_work: Crew) -> None:
        """Two more attempts, and then the turn is incomplete; a person is never left waiting."""
        await at_work.agent("may", {"reply": "", "marker": False})
        (item,) = await at_work.send("may", "report", kind="daily_report")
        await at_work.over(item)
        ended = [one.outcome for one in await at_work.events(TurnEnded, "may")]
        assert ended == [Incomplete(EMPTY_REPLY)] * 3
        (chat,) = await at_work.send("may", "hello")
        await at_work.over(chat)
        assert len(await at_work.events(TurnEnded, "may")) == 4

    async def test_a_model_that_fails(self, at_work: Crew) -> None:
        """Attempts with backoff, the dead letter, and one notice."""
        await at_work.agent(
            "dee", {"error": "server_error"}, retryBackoffS=[0.1, 0.2], maxDeliveryAttempts=3
        )
        (item,) = await at_work.send("dee", "hello")
        await at_work.over(item)
        assert await at_work.status(item) == "dead_letter"
        assert [one.wait_s for one in await at_work.events(ItemRequeued, "dee")] == [0.1, 0.2]
        assert [one.attempt for one in await at_work.events(ItemPicked, "dee")] == [1, 2, 3]
        notices = [one for one in await at_work.events(NoticePosted) if one.agent_id == "dee"]
        assert [one.item_id for one in notices] == [item]

    async def test_a_model_that_refuses(self, at_work: Crew) -> None:
        """No attempt can help."""
        await at_work.agent("ned", {"error": "refused"})
        (item,) = await at_work.send("ned", "hello")
        await at_work.over(item)
        assert await at_work.status(item) == "dead_letter"
        assert len(await at_work.events(ItemPicked, "ned")) == 1

    async def test_too_many_requests(self, at_work: Crew) -> None:
        """A model that never comes to an end is stopped by its policy."""
        again = call("test_return", value="more")
        await at_work.agent("ivo", {"calls": [again]}, maxToolIterations=3)
        (item,) = await at_work.send("ivo", "hello")
        await at_work.over(item)
        assert len(await at_work.events(ModelResponded, "ivo")) == 3
        (ended,) = await at_work.events(TurnEnded, "ivo")
        assert isinstance(ended.outcome, Incomplete)


class TestResults:
    """What tools return is kept, whatever it is."""

    async def test_what_postgres_would_refuse(self, at_work: Crew) -> None:
        """C45, C46, C47: NUL and lone surrogates go to the model and come back unharmed."""
        value = "a\x00b\ud800c\\u0000"
        await at_work.agent(
            "nul", {"step": 0, "calls": [call("test_return", value=value)], "reply": value},
            {"step": 1, "reply": value},
        )  # fmt: skip
        (item,) = await at_work.send("nul", value)
        await at_work.over(item)
        (result,) = await at_work.events(ToolCallFinished, "nul")
        assert result.content == value
        (ended,) = await at_work.events(TurnEnded, "nul")
        assert ended.outcome == Completed(value)
        assert (await at_work.item(item)).payload.content == value

    async def test_three_hundred_megabytes(self, at_work: Crew) -> None:
        """C48: cut off with a mark; the turn is completed and its worker alive."""
        big = call("test_big", bytes=300 * 2**20)
        await at_work.agent("big", {"step": 0, "calls": [big]}, {"step": 1, "reply": "so"})
        (item,) = await at_work.send("big", "hello")
        await at_work.over(item)
        assert await at_work.status(item) == "completed"
        (result,) = await at_work.events(ToolCallFinished, "big")
        assert len(result.content) < RESULT_LIMIT + 200
        assert "cut off" in result.content[-200:]

    async def test_arguments_without_an_end(self, at_work: Crew) -> None:
        """However deep they are, they are kept, and the worker lives."""
        deep: object = "x"
        for _ in range(400):
            deep = [deep]
        json.dumps(deep)
        await at_work.agent(
            "deb", {"step": 0, "calls": [call("test_return", value=deep)]},
            {"step": 1, "reply": "so"},
        )  # fmt: skip
        (item,) = await at_work.send("deb", "hello")
        await at_work.over(item)
        assert await at_work.status(item) == "completed"
