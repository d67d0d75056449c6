"""Replies with and without the completion marker, through real turns and their crashes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from tests.races.hand import Hand, hired
from tests.races.staging import Stage
from tests.races.test_interrupts import RETURN, send
from tests.support.lives import begin, create
from undivided.domain.dialogue import ModelReply, ModelRequest, Usage
from undivided.domain.errors import FailureKind, ModelFailed
from undivided.domain.events.items import AgentIncomplete, ItemCompleted, ItemRequeued
from undivided.domain.events.sessions import ModelResponded, ToolCallStarted, TurnEnded, TurnNudged
from undivided.domain.finishing import Nudge
from undivided.domain.marker import COMPLETION_MARKER
from undivided.domain.outcomes import EMPTY_REPLY, MARKER_MISSING, Completed, Incomplete
from undivided.store import landing
from undivided.store.log import Log
from undivided.store.settings import Settings

MARKED = f"whole\n{COMPLETION_MARKER}"


class Scripted:
    """Answers what it is given, one after the other; the last one again and again."""

    def __init__(self, *texts: str, fails: FailureKind | None = None) -> None:
        self._texts, self._fails = list(texts), fails
        self.asked: list[ModelRequest] = []

    async def complete(self, request: ModelRequest, on_delta: Callable[[str], None]) -> ModelReply:
        """The next text, or the failure once there is none left."""
        self.asked.append(request)
        if not self._texts and self._fails is not None:
            raise ModelFailed(self._fails, "as told")
        text = self._texts.pop(0) if len(self._texts) > 1 or self._fails else self._texts[0]
        on_delta(text)
        return ModelReply(text, (), Usage(1, 1, 0, 1), "scripted")


def speaks(hand: Hand, *texts: str, fails: FailureKind | None = None) -> Scripted:
    """The worker's model, from here on."""
    script = Scripted(*texts, fails=fails)
    hand.model.complete = script.complete  # type: ignore[method-assign]
    return script


async def outcomes(stage: Stage) -> list[object]:
    return [one.outcome for one in await stage.events(TurnEnded)]


async def reasons(stage: Stage) -> list[str]:
    return [one.reason for one in await stage.events(AgentIncomplete)]


class TestMarker:
    """A turn that no person waits in has to say that it is done."""

    async def test_131_a_marked_reply(self, log: Log, stage: Stage, settings: Settings) -> None:
        """The marker is asked for, and nowhere to be seen afterwards."""
        await create(log, "ada")
        await send(log, "a2a_message", "work")
        async with hired(settings) as hand:
            script = speaks(hand, MARKED)
            await hand.attend("ada")
        assert COMPLETION_MARKER in script.asked[0].instructions
        assert await outcomes(stage) == [Completed("whole")]
        (response,) = await stage.events(ModelResponded)
        assert (response.text, response.marked) == ("whole", True)
        assert await reasons(stage) == []

    async def test_203_one_continuation(self, log: Log, stage: Stage, settings: Settings) -> None:
        """In the same session and turn, with tools; both texts are the reply."""
        await create(log, "ada")
        await send(log, "a2a_message", "work")
        async with hired(settings) as hand:
            script = speaks(hand, "half", MARKED)
            await hand.attend("ada")
        first, second = script.asked
        assert (second.turn_id, second.step, second.tools) == (first.turn_id, 1, first.tools)
        assert await outcomes(stage) == [Completed("half\n\nwhole")]
        assert [one.reason for one in await stage.events(TurnNudged)] == ["marker_missing"]

    async def test_136_still_missing(self, log: Log, stage: Stage, settings: Settings) -> None:
        """Incomplete, over, told once, not tried again."""
        await create(log, "ada")
        await send(log, "a2a_message", "work")
        async with hired(settings) as hand:
            script = speaks(hand, "half")
            await hand.attend("ada")
        assert len(script.asked) == 2
        assert await outcomes(stage) == [Incomplete(MARKER_MISSING, "half\n\nhalf")]
        assert await reasons(stage) == [MARKER_MISSING]
        assert await stage.events(ItemRequeued) == []
        assert await stage.ask("SELECT waiting FROM agents") == [(0,)]

    async def test_84_a_person_who_chats(self, log: Log, stage: Stage, settings: Settings) -> None:
        """Is not kept waiting, and has what was said."""
        await create(log, "ada")
        await send(log, "human_chat", "hello", role="user")
        async with hired(settings) as hand:
            script = speaks(hand, "hi")
            await hand.attend("ada")
        assert len(script.asked) == 1
        assert await outcomes(stage) == [Incomplete(MARKER_MISSING, "hi")]
        assert await reasons(stage) == [MARKER_MISSING]

    async def test_135_always_empty(self, log: Log, stage: Stage, settings: Settings) -> None:
        """Three calls, one trace, nothing left."""
        await create(log, "ada")
        await send(log, "a2a_message", "work")
        async with hired(settings) as hand:
            script = speaks(hand, "")
            await hand.attend("ada")
        assert len(script.asked) == 3
        assert await outcomes(stage) == [Incomplete(EMPTY_REPLY)] * 3
        assert await reasons(stage) == [EMPTY_REPLY]
        assert await stage.ask("SELECT waiting FROM agents") == [(0,)]

    async def test_137_empty_to_a_person(self, log: Log, stage: Stage, settings: Settings) -> None:
        """One call, one trace, completed."""
        await create(log, "ada")
        await send(log, "human_chat", "hello", role="user")
        async with hired(settings) as hand:
            script = speaks(hand, "")
            await hand.attend("ada")
        assert len(script.asked) == 1
        assert await reasons(stage) == [EMPTY_REPLY]
        assert len(await stage.events(ItemCompleted)) == 1

    @pytest.mark.parametrize("kind", ["timeout", "server_error", "refused", "malformed"])
    async def test_a_failing_continuation(
        self, log: Log, stage: Stage, settings: Settings, kind: FailureKind
    ) -> None:
        """Leaves what was said, and is not another attempt."""
        await create(log, "ada")
        await send(log, "a2a_message", "work")
        async with hired(settings) as hand:
            speaks(hand, "half", fails=kind)
            await hand.attend("ada")
        assert await outcomes(stage) == [Incomplete(MARKER_MISSING, "half")]
        assert await reasons(stage) == [MARKER_MISSING]

    async def test_a_crash_after_the_nudge(
        self, log: Log, stage: Stage, settings: Settings
    ) -> None:
        """Whoever goes on asks for the second response only."""
        await create(log, "ada")
        await send(log, "a2a_message", "work")
        flight = await begin(log, "ada")
        turn_id, epoch = flight.turn.id, flight.epoch
        said = ModelResponded(
            turn_id=turn_id, step=0, text="half", calls=(), usage=Usage(1, 1, 0, 1), model="m",
            epoch=epoch,
        )  # fmt: skip
        nudge = Nudge("marker_missing", "go on").event(turn_id, epoch)
        await landing.record(log, flight, said, nudge)
        async with hired(settings) as hand:
            script = speaks(hand, MARKED)
            await hand.attend("ada")
        (asked,) = script.asked
        assert (asked.turn_id, asked.step, asked.newest_input) == (turn_id, 1, "go on")
        assert await outcomes(stage) == [Completed("half\n\nwhole")]
        assert len(await stage.events(TurnNudged)) == 1


class TestDemand:
    """Which items ask the model."""

    @pytest.mark.parametrize(
        ("kind", "extra", "asked"),
        [
            ("requirement_update", {}, 0),
            ("requirement_update", {"actionRequired": True}, 1),
            ("task_status_update", {}, 0),
            ("task_status_update", {"triggerExecution": True}, 1),
            ("task_comment", {}, 1),
        ],
    )
    async def test_200_201_by_the_item(
        self, log: Log, stage: Stage, settings: Settings, kind: str, extra: dict[str, bool],
        asked: int,
    ) -> None:  # fmt: skip
        """What only informs is completed without a word."""
        await create(log, "ada")
        await send(log, kind, "news", extra=extra)
        async with hired(settings) as hand:
            script = speaks(hand, MARKED)
            await hand.attend("ada")
        assert len(script.asked) == asked
        assert await outcomes(stage) == [Completed("whole" if asked else "")]
        assert await reasons(stage) == []


class TestTools:
    """A continuation is a turn like any other."""

    async def test_it_can_call_tools(self, log: Log, stage: Stage, settings: Settings) -> None:
        """As many as its own limit allows."""
        await create(log, "ada")
        await send(log, "a2a_message", "work")
        async with hired(settings) as hand:
            hand.model.unmarked = 1
            hand.model.calls = [[], [RETURN]]
            await asyncio.wait_for(hand.attend("ada"), 20)
        assert len(await stage.events(ToolCallStarted)) == 1
        assert await outcomes(stage) == [Completed("so\n\nso")]
