"""Agents that tell people something, by real transactions."""

from __future__ import annotations

import pytest

from tests.races.hand import hired
from tests.races.staging import Stage
from tests.races.test_interrupts import send
from tests.races.test_people import asking, telling
from tests.support.lives import BY, create
from undivided.domain.dialogue import AssistantSaid, UserSaid
from undivided.domain.errors import NotFound
from undivided.domain.events import people as p
from undivided.domain.events.sessions import MessagePosted, ToolCallFinished
from undivided.domain.history import WROTE_FIRST
from undivided.store.commands import notifications, sessions
from undivided.store.log import Log
from undivided.store.settings import Settings


class TestTelling:
    """What an agent tells a person is in their notifications and in its chat."""

    async def test_a_reply_finds_the_context(
        self, log: Log, stage: Stage, settings: Settings
    ) -> None:
        """The chat did not exist yet; whoever answers there is answered by one who knows."""
        await create(log, "ada")
        await send(log, "system_event", "patrol")
        async with hired(settings) as hand:
            hand.model.calls = [[telling(related_task_id="tsk_1", priority="urgent")]]
            await hand.attend("ada")
            (message,) = await stage.events(MessagePosted)
            assert message.session_id == "ses_ada"
            assert message.content == (
                "**Found it**\n\nIt was the cable.\n\n"
                "<!-- notify_context: task_id=tsk_1, priority=urgent -->"
            )
            (told,) = await stage.events(p.NotificationPosted)
            assert told.user_id == "owner"
            assert told.action == p.Action("navigate", path="/work?task=tsk_1")
            await send(log, "human_chat", "which one?", sender="bob", role="user")
            await hand.attend("ada")
            assert hand.model.asked[-1].history == (
                UserSaid(WROTE_FIRST), AssistantSaid(message.content),
                UserSaid("[ACTIVITY: system_event] patrol → processed"), UserSaid("which one?"),
            )  # fmt: skip

    async def test_in_the_chat_itself_it_stands_in_its_turn(
        self, log: Log, stage: Stage, settings: Settings
    ) -> None:
        """And the next turn reads it behind the call's result."""
        await create(log, "ada")
        await send(log, "human_chat", "look", sender="bob", role="user")
        async with hired(settings) as hand:
            hand.model.calls = [[telling()]]
            await hand.attend("ada")
            (told,) = await stage.events(p.NotificationPosted)
            assert told.user_id == "bob"
            assert told.action == p.Action("open_chat", agent_id="ada", session_id="ses_ada")
            await send(log, "human_chat", "thanks", sender="bob", role="user")
            await hand.attend("ada")
            said = [one.content for one in hand.model.asked[-1].history]
        assert said == [
            "look", "", "bob was notified", "**Found it**\n\nIt was the cable.", "so", "thanks",
        ]  # fmt: skip

    async def test_an_escalation_is_urgent(
        self, log: Log, stage: Stage, settings: Settings
    ) -> None:
        await create(log, "ada")
        await send(log, "system_event", "work")
        async with hired(settings) as hand:
            hand.model.calls = [[("escalate", {"title": "Fire", "body": "in the hall"})]]
            await hand.attend("ada")
        (message,), (told,) = (
            await stage.events(MessagePosted), await stage.events(p.NotificationPosted)
        )  # fmt: skip
        assert (message.source, message.priority, told.priority) == (
            "escalation", "urgent", "urgent",
        )  # fmt: skip

    async def test_where_the_chat_was_archived_it_stands_in_the_turns_own_session(
        self, log: Log, stage: Stage, settings: Settings
    ) -> None:
        await create(log, "ada")
        await send(log, "human_chat", "hi", sender="bob", role="user")
        async with hired(settings) as hand:
            await hand.attend("ada")
            await sessions.end(hand.outlet, "ses_ada", "archived", BY)
            await send(log, "system_event", "work", session="s2")
            hand.model.calls = [[telling()]]
            await hand.attend("ada")
        (message,) = await stage.events(MessagePosted)
        assert message.session_id == "s2"

    async def test_what_cannot_be_told_is_told_to_the_model(
        self, log: Log, stage: Stage, settings: Settings
    ) -> None:
        """Ids that are none, names that are none, options that are none."""
        await create(log, "ada")
        await send(log, "system_event", "work")
        twice = [{"id": "a", "label": "A"}, {"id": "a", "label": "B"}]
        async with hired(settings) as hand:
            hand.model.calls = [
                [telling(related_task_id="-->"), telling(target_user_id="\x00")],
                [asking(options=twice), asking(options=[{"id": " ", "label": "A"}])],
            ]
            await hand.attend("ada")
        results = await stage.events(ToolCallFinished)
        assert [one.resolution for one in results] == ["raised"] * 4
        assert await stage.events(p.NotificationPosted) == []


async def test_235_all_that_is_unread_is_marked_once(
    log: Log, stage: Stage, settings: Settings
) -> None:
    """Two notifications, one marked: marking all marks the one that was left."""
    await create(log, "ada")
    await send(log, "system_event", "work")
    async with hired(settings) as hand:
        hand.model.calls = [[telling(), telling(target_user_id="all")]]
        await hand.attend("ada")
        first, second = await stage.events(p.NotificationPosted)
        assert second.user_id == "all"
        one = await notifications.mark_read(hand.outlet, first.notification_id, BY)
        again = await notifications.mark_read(hand.outlet, first.notification_id, BY)
        rest = await notifications.mark_all_read(hand.outlet, "owner", BY)
        nothing = await notifications.mark_all_read(hand.outlet, "owner", BY)
        with pytest.raises(NotFound):
            await notifications.mark_read(hand.outlet, "ntf_unknown", BY)
    assert [one.count, again.count, rest.count, nothing.count] == [1, 0, 1, 0]
    assert await stage.ask("SELECT count(*) FROM notifications WHERE read_at IS NULL") == [(0,)]
