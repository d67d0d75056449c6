"""What agents write to each other, through the tool and real turns of both."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.races.hand import Hand, hired
from tests.races.staging import Stage
from tests.races.test_interrupts import send
from tests.support.lives import BY, accept, create
from undivided.domain.events import callbacks as c
from undivided.domain.events.items import StimulusAccepted
from undivided.domain.events.sessions import ToolCallFinished, TurnStarted
from undivided.domain.messaging import CONVERSATION_ID
from undivided.domain.recorded import Meta
from undivided.domain.tooling import Returned
from undivided.store.commands import agents
from undivided.store.log import Log
from undivided.store.settings import Settings
from undivided.workers.tools.messages import messaging
from undivided.workers.tools.tool import ToolContext


def ask(**more: object) -> list[tuple[str, dict[str, object]]]:
    """A response that writes to bob and waits to hear from him."""
    wish = {"agent_id": "bob", "message": "how far?", "await_in_session": True}
    return [("agent_send_message", wish | more)]


async def asking(log: Log, hand: Hand, *calls: list[tuple[str, dict[str, object]]]) -> None:
    """A person's message, on which ada calls tools."""
    await send(log, "human_chat", "ask bob", role="user", sender="eve")
    hand.model.calls = list(calls)
    await hand.attend("ada")


async def results(stage: Stage) -> list[ToolCallFinished]:
    """How the calls ended."""
    return await stage.events(ToolCallFinished)


class TestConversation:
    """One asks, the other answers."""

    async def test_188_189_the_answer_is_heard_where_it_was_asked(
        self, log: Log, stage: Stage, settings: Settings
    ) -> None:
        """The callback stands before the message; both turns belong to one story."""
        for agent_id in ("ada", "bob"):
            await create(log, agent_id, coalesceWindowMs=0)
        async with hired(settings) as hand:
            await asking(log, hand, ask())
            dispatched: dict[str, Any] = json.loads((await results(stage))[0].content)
            hand.model.calls = [
                [
                    (
                        "agent_send_message",
                        {
                            "agent_id": "ada",
                            "message": "half way",
                            "conversation_id": dispatched["conversation_id"],
                        },
                    )
                ]
            ]
            assert hand.bell.rung == ["bob"]
            await hand.attend("bob")
            await hand.attend("ada")
        assert (dispatched["status"], dispatched["agent_id"]) == ("dispatched", "bob")
        asked, to_bob, to_ada = [one.session_id for one in await stage.events(TurnStarted)]
        assert (to_ada == asked, to_bob == asked) == (True, False)
        (done,) = await stage.events(c.CallbackResolved)
        reply = (await stage.events(StimulusAccepted))[-1]
        assert (done.how, done.late, done.item_ids) == ("completed", False, (reply.item_id,))
        assert reply.payload.extra[CONVERSATION_ID] == dispatched["conversation_id"]
        order = [kind for (kind,) in await stage.ask(
            "SELECT type FROM events WHERE type IN ('callback.registered', 'item.accepted')"
            " ORDER BY txid, position"
        )]  # fmt: skip
        assert order == [
            "item.accepted", "callback.registered", "item.accepted", "item.accepted",
        ]  # fmt: skip
        assert len(await stage.ask("SELECT DISTINCT correlation FROM items")) == 1

    async def test_a_call_that_is_run_again_asks_once(
        self, log: Log, stage: Stage, settings: Settings
    ) -> None:
        """Its worker died before the result was recorded, and bob has answered since."""
        for agent_id in ("ada", "bob"):
            await create(log, agent_id)
        async with hired(settings) as hand:
            (tool,) = messaging(hand.outlet)
            call = ToolContext(
                "ada", "ses_ada", "trn_1", "call_1", "key_1", log.database.clock.now(), BY
            )
            first = await tool.run(call, ask()[0][1])
            (row,) = await stage.ask("SELECT id, correlation_id, status FROM callbacks")
            answer = ToolContext(
                "bob", "ses_bob", "trn_2", "call_2", "key_2", call.now, Meta(actor="agent:bob")
            )
            await tool.run(answer, {"agent_id": "ada", "message": "so", "conversation_id": row[1]})
            again = await tool.run(call, ask()[0][1])
        assert isinstance(first, Returned)
        assert first == again
        assert row[2] == "pending"
        assert await stage.ask("SELECT id, status FROM callbacks") == [(row[0], "resolved")]
        assert await stage.ask("SELECT agent_id, count(*) FROM items GROUP BY 1 ORDER BY 1") == [
            ("ada", 1), ("bob", 1),
        ]  # fmt: skip


class TestRefused:
    """Messages that reach nobody."""

    @pytest.mark.parametrize(
        ("to", "why"), [("eve", "no agent"), ("ada", "yourself"), ("gone", "deleted")]
    )
    async def test_nobody_is_waited_for(
        self, log: Log, stage: Stage, settings: Settings, to: str, why: str
    ) -> None:
        """The model reads why, and no reply is awaited."""
        for agent_id in ("ada", "gone"):
            await create(log, agent_id)
        async with hired(settings) as hand:
            await agents.delete(hand.outlet, "gone", BY)
            await asking(log, hand, ask(agent_id=to))
        (told,) = await results(stage)
        assert told.resolution == "raised"
        assert why in told.content
        pending = await stage.ask("SELECT 1 FROM callbacks WHERE status <> 'cancelled'")
        assert pending == []

    async def test_a_full_mailbox_takes_nothing(
        self, log: Log, stage: Stage, settings: Settings
    ) -> None:
        """What was registered before is cancelled with the call's result, in one transaction."""
        await create(log, "ada")
        await create(log, "bob", mailboxCapacity=1)
        async with hired(settings) as hand:
            await accept(log, "bob", "the one that fits")
            await asking(log, hand, ask())
        (refused,) = await results(stage)
        assert "holds 1 of at most 1" in refused.content
        assert await stage.ask("SELECT status FROM callbacks") == [("cancelled",)]
        same = await stage.ask(
            "SELECT count(DISTINCT txid) FROM events"
            " WHERE type IN ('callback.cancelled', 'tool_call.finished')"
        )
        assert same == [(1,)]

    async def test_too_many_awaited(
        self, log: Log, stage: Stage, settings: Settings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The second message is not sent at all."""
        monkeypatch.setattr("undivided.store.commands.callbacks.PENDING_AT_MOST", 1)
        for agent_id in ("ada", "bob"):
            await create(log, agent_id)
        async with hired(settings) as hand:
            await asking(log, hand, ask(), ask(message="and now?"))
        _, refused = await results(stage)
        assert "1 callbacks are pending already" in refused.content
        assert len(await stage.events(StimulusAccepted)) == 2
