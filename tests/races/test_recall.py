"""Looking back, and what is kept of what was done: each activity by itself."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.races.hand import hired
from tests.races.staging import Stage
from tests.races.test_deliberation import plan
from tests.races.test_interrupts import send
from tests.support.lives import create
from undivided.domain.dialogue import ToolAnswered
from undivided.domain.events.sessions import ActivityNoted, ToolCallFinished, TurnStarted
from undivided.store.log import Log
from undivided.store.settings import Settings


async def results(stage: Stage) -> list[dict[str, Any]]:
    return [json.loads(one.content) for one in await stage.events(ToolCallFinished)]


async def test_an_activity_shows_its_own_steps_alone(
    log: Log, stage: Stage, settings: Settings
) -> None:
    """Not what was said before it in the same conversation."""
    await create(log, "ada")
    async with hired(settings) as hand:
        for text in ("first", "second"):
            await send(log, "human_chat", text, role="user", sender="bob")
            hand.model.calls = [[("check_mailbox", {})], []]
            await hand.attend("ada")
        second = (await stage.events(TurnStarted))[-1]
        await send(log, "system_event", "look back")
        hand.model.calls = [[("recall_activity", {"activity_id": second.turn_id})]]
        await hand.attend("ada")
    logs = (await results(stage))[-1]["logs"]
    assert [(one["role"], one["content"]) for one in logs if one["role"] != "tool"] == [
        ("user", "second"), ("assistant", "[calls check_mailbox]"), ("assistant", "so"),
    ]  # fmt: skip


async def test_a_conversation_is_read_back_page_by_page(
    log: Log, stage: Stage, settings: Settings
) -> None:
    """`before` goes on where the last page began, until there is nothing earlier."""
    await create(log, "ada")
    async with hired(settings) as hand:
        for number in range(4):
            await send(log, "human_chat", f"line {number}", role="user", sender="bob")
            await hand.attend("ada")
        read: list[str] = []
        before: dict[str, object] = {}
        while True:
            await send(log, "system_event", "look back")
            asked = {"scope": "chat_session", "session_id": "ses_ada", "limit": 3, **before}
            hand.model.calls = [[("recall_context", asked)]]
            await hand.attend("ada")
            page = (await results(stage))[-1]
            lines = [one["content"] for one in page["messages"]]
            read = [line for line in lines if not line.startswith("[ACTIVITY")] + read
            if "before" not in page:
                break
            before = {"before": page["before"]}
    assert read == ["line 0", "so", "line 1", "so", "line 2", "so", "line 3", "so"]


async def test_a_batch_is_one_activity_of_its_first_item(
    log: Log, stage: Stage, settings: Settings
) -> None:
    """And the deliberation before it is another."""
    await create(log, "ada")
    ids = [await send(log, "system_event", f"work {n}") for n in range(3)]
    async with hired(settings) as hand:
        hand.model.calls = [plan(process_item_ids=[ids[1], ids[2], ids[0]])]
        await hand.attend("ada")
    done = await stage.ask("SELECT type, item_id, summary FROM activities ORDER BY started_at")
    assert done == [
        ("deliberation", ids[0], "considers 3 items"), ("internal", ids[1], "work 1"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("source_type", "extra", "kind"),
    [
        ("task_comment", {}, "chat"),
        ("requirement_comment", {}, "chat"),
        ("task_status_update", {"triggerExecution": True}, "task"),
        ("mention", {}, "chat"),
        ("session_reply", {}, "respond_in_session"),
        ("requirement_update", {"actionRequired": True}, "internal"),
        ("heartbeat", {}, "heartbeat"),
    ],
)
async def test_an_activity_is_of_the_kind_of_its_stimulus(
    log: Log, stage: Stage, settings: Settings, source_type: str, extra: dict[str, Any], kind: str
) -> None:
    """By its type; where that leaves it open, by how it was handled."""
    await create(log, "ada")
    await send(log, source_type, "work", extra=extra)
    async with hired(settings) as hand:
        await hand.attend("ada")
    assert await stage.ask("SELECT type FROM activities") == [(kind,)]


async def test_a_person_who_chats_elsewhere_leaves_no_line(
    log: Log, stage: Stage, settings: Settings
) -> None:
    """What people say is not an activity, in whatever session they say it."""
    await create(log, "ada")
    await send(log, "human_chat", "hello", role="user", sender="bob")
    await send(log, "human_chat", "elsewhere", role="user", sender="eve", session="ses_eve")
    await send(log, "callback_result", "npm test")
    async with hired(settings) as hand:
        await hand.attend("ada")
    assert [one.line for one in await stage.events(ActivityNoted)] == [
        "[ACTIVITY: callback_result] npm test → callback processed"
    ]


ODD = ("", "\x00", "'", "& | !", '"', "-", "\ud800", "word " * 100_000, "x" * 500_000)


def oddly(tool: str, *fields: str, **more: object) -> list[tuple[str, dict[str, object]]]:
    """One call for each odd text, in these fields of a tool."""
    return [(tool, {**more, **dict.fromkeys(fields, odd)}) for odd in ODD]


ASKED = [
    *oddly("memory_search", "query"),
    *oddly("memory_search_longterm", "query"),
    *oddly("recall_activity", "type"),
    *oddly("recall_activity", "activity_id"),
    *oddly("recall_context", "session_id", scope="session"),
    *oddly("recall_context", "channel_key", scope="channel"),
    *oddly("update_working_memory", "key", "content"),
    *oddly("memory_save", "key", "content"),
    *oddly("memory_update_longterm", "section", "content"),
    *oddly("memory_delete", "key"),
    *oddly("clear_working_memory", "key"),
    *oddly("drop_mailbox_item", "item_id", "reason"),
    *oddly("cancel_wakeup", "wakeup_id"),
]


async def test_whatever_is_asked_is_answered(log: Log, stage: Stage, settings: Settings) -> None:
    """However long, odd or empty it is: every call has its result, and the turn its end."""
    await create(log, "ada")
    await send(log, "human_chat", "search", role="user", sender="bob")
    async with hired(settings) as hand:
        hand.model.calls = [ASKED]
        await hand.attend("ada")
        told = [one for one in hand.model.asked[-1].history if isinstance(one, ToolAnswered)]
    assert len(told) == len(ASKED)
    ended = await stage.ask("SELECT data->'outcome'->>'type' FROM events WHERE type = 'turn.ended'")
    assert ended == [("completed",)]


async def test_224_the_newest_of_several_comments_says_how_they_stand(
    log: Log, settings: Settings
) -> None:
    """A person who wrote last ends a streak of agents, and it is their comment that answers."""
    await create(log, "ada", coalesceWindowMs=0)
    first = {"agentCommentStreak": 3, "replyTo": {"author": "Bob", "content": "older"}}
    last = {"agentCommentStreak": 0, "replyTo": {"author": "Eve", "content": "newer"}}
    await send(log, "task_comment", "as I said", task="tsk_1", extra=first, role="agent")
    await send(log, "task_comment", "stop it", task="tsk_1", extra=last, role="user", sender="eve")
    async with hired(settings) as hand:
        await hand.attend("ada")
        (request,) = hand.model.asked
    assert request.newest_input == "as I said\n\n---\n\nstop it"
    assert "comments are by agents" not in request.instructions
    assert 'It answers what Eve wrote: "newer"' in request.instructions
    assert "reply_to_comment_id" in request.instructions


async def test_the_chat_reads_what_came_of_it(log: Log, stage: Stage, settings: Settings) -> None:
    """In the words of the type; an item that asks nothing of the model is only noted."""
    await create(log, "ada")
    await send(log, "human_chat", "hello", role="user", sender="bob")
    async with hired(settings) as hand:
        await hand.attend("ada")
        for source_type, extra in (
            ("heartbeat", {}), ("review_request", {}), ("task_status_update", {}),
            ("task_status_update", {"triggerExecution": True}), ("requirement_update", {}),
            ("system_event", {}),
        ):  # fmt: skip
            await send(log, source_type, "this", extra=extra)
            await hand.attend("ada")
    assert [one.line for one in await stage.events(ActivityNoted)] == [
        "[ACTIVITY: heartbeat] this → heartbeat processed",
        "[ACTIVITY: review_request] this → reviewed",
        "[ACTIVITY: task_status_update] this → noted (informational)",
        "[ACTIVITY: task_status_update] this → executed",
        "[ACTIVITY: requirement_update] this → noted (informational)",
        "[ACTIVITY: system_event] this → processed",
    ]
