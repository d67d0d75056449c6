"""What agents remember, kept and shown by real transactions."""

from __future__ import annotations

import json
from typing import Any

from tests.races.hand import hired
from tests.races.staging import Stage
from tests.races.test_deliberation import plan
from tests.races.test_interrupts import send
from tests.support.lives import create
from undivided.domain.events import agents as a
from undivided.domain.events.sessions import ActivityNoted, ToolCallFinished, TurnStarted
from undivided.domain.events.triage import TriageApplied
from undivided.store.log import Log
from undivided.store.settings import Settings


async def results(stage: Stage) -> list[dict[str, Any]]:
    return [json.loads(one.content) for one in await stage.events(ToolCallFinished)]


async def test_177_the_agent_has_four_keys_of_its_own(
    log: Log, stage: Stage, settings: Settings
) -> None:
    """The fifth takes the place of the oldest; what the system keeps for it is not counted."""
    await create(log, "ada")
    await send(log, "human_chat", "remember", role="user", sender="bob")
    keys = ["a", "b", "c", "d", "a", "e"]
    async with hired(settings) as hand:
        hand.model.calls = [
            [("update_working_memory", {"key": key, "content": f"about {key}"}) for key in keys],
            [
                ("update_notebook", {"key": "f"}),
                ("clear_working_memory", {"key": "e"}),
                ("clear_working_memory", {"key": "e"}),
                ("clear_notebook", {"all": True}),
            ],
        ]
        await hand.attend("ada")
        shown = hand.model.asked[1].instructions
    told = [one.content for one in await stage.events(ToolCallFinished)]
    assert [json.loads(one).get("evicted") for one in told[:6]] == [None] * 5 + [["b"]]
    assert "content" in told[6]
    assert [json.loads(one)["cleared"] for one in told[7:]] == [1, 0, 3]
    assert all(f"about {key}" in shown for key in "cdae")
    assert "about b" not in shown
    assert await stage.ask("SELECT key FROM memories") == []


async def test_knowledge_is_found_by_its_words(log: Log, stage: Stage, settings: Settings) -> None:
    """And a section is in every prompt from then on."""
    await create(log, "ada")
    await send(log, "human_chat", "learn", role="user", sender="bob")
    async with hired(settings) as hand:
        hand.model.calls = [
            [
                ("memory_save", {"key": "kettle", "content": "The kettle boils at noon"}),
                ("memory_save", {"key": "bread", "content": "Zoë bakes on Fridays"}),
                ("memory_update_longterm", {"section": "team", "content": "Bob reviews"}),
                ("memory_search", {"query": "zoë fridays"}),
                ("memory_search", {"query": "noon -kettle"}),
                ("memory_search_longterm", {"query": "reviews"}),
                ("memory_delete", {"key": "bread"}),
                ("memory_delete", {"key": "bread"}),
                ("memory_update_longterm", {"section": "team", "content": "x" * 3001}),
            ]
        ]
        await hand.attend("ada")
        assert "### team\nBob reviews" in hand.model.asked[1].instructions
    told = await results(stage)
    assert [one["key"] for one in told[3]["results"]] == ["bread"]
    assert told[4]["results"] == []
    assert [one["key"] for one in told[5]["results"]] == ["team"]
    assert [one["status"] for one in told[6:]] == ["ok", "not_found", "error"]
    kept = await stage.ask("SELECT kind, key FROM knowledge ORDER BY key")
    assert kept == [("note", "kettle"), ("section", "team")]


async def test_161_a_plan_keeps_things_for_now_and_for_good(
    log: Log, stage: Stage, settings: Settings
) -> None:
    """In the order in which it says them, before it is applied."""
    await create(log, "ada")
    ids = [await send(log, "system_event", f"work {n}") for n in range(3)]
    updates = [
        {"key": "now", "content": "this week", "type": "working"},
        {"key": "ever", "content": "always", "type": "longterm"},
        {"key": "much", "content": "x" * 4000, "type": "longterm"},
    ]
    async with hired(settings) as hand:
        hand.model.calls = [plan(process_item_ids=ids, memory_updates=updates)]
        await hand.attend("ada")
        assert "### ever\nalways" in hand.model.asked[1].instructions
    saved = await stage.events(a.KnowledgeSaved)
    assert [(one.kind, one.key) for one in saved] == [("section", "ever"), ("note", "much")]
    assert [one.key for one in await stage.events(a.MemoryNoted)] == ["now", "deliberation"]
    assert len(await stage.events(TriageApplied)) == 1


async def test_looking_back(log: Log, stage: Stage, settings: Settings) -> None:
    """At what was done, step by step, and at what was said."""
    await create(log, "ada")
    await send(log, "human_chat", "hello", role="user", sender="bob")
    async with hired(settings) as hand:
        await hand.attend("ada")
        (first,) = await stage.events(TurnStarted)
        await send(log, "system_event", "look back")
        hand.model.calls = [
            [
                ("recall_activity", {"limit": 5}),
                ("recall_activity", {"type": "heartbeat"}),
                ("recall_activity", {"activity_id": first.turn_id}),
                ("recall_activity", {"activity_id": "trn_unknown"}),
                ("recall_context", {"scope": "chat"}),
                ("recall_context", {"scope": "channel", "channel_key": "dm:a2a:ada:bob"}),
                ("recall_context", {"scope": "session"}),
            ]
        ]
        await hand.attend("ada")
    listed, none, read, unknown, chat, channel, here = await results(stage)
    assert [one["type"] for one in listed["activities"]] == ["internal", "chat"]
    assert none["activities"] == []
    assert [one["content"] for one in read["logs"]] == ["hello", "so"]
    assert unknown["status"] == channel["status"] == "not_found"
    assert [one["content"] for one in chat["messages"]] == ["hello", "so"]
    assert here["messages"][0]["content"] == "look back"


async def test_the_chat_is_told_what_was_done_elsewhere(
    log: Log, stage: Stage, settings: Settings
) -> None:
    """Hidden from people, known to the agent, in the append that ended the turn."""
    await create(log, "ada")
    await send(log, "system_event", "before anybody talked with it")
    async with hired(settings) as hand:
        await hand.attend("ada")
        await send(log, "human_chat", "hello", role="user", sender="bob")
        await hand.attend("ada")
        event = await send(log, "system_event", "the disk is full")
        at_work = await hand.at_the_model("ada")
        await send(log, "human_chat", "and?", role="user", sender="bob")
        hand.model.gate.set()
        await at_work
        assert hand.model.read()[-1] == [
            "hello", "[ACTIVITY: system_event] the disk is full → processed", "and?",
        ]  # fmt: skip
    (line,) = await stage.events(ActivityNoted)
    assert (line.item_id, line.session_id) == (event, "ses_ada")
    together = await stage.ask(
        "SELECT count(DISTINCT e.txid) FROM events e WHERE e.type IN ('activity.noted') OR"
        " (e.type = 'turn.ended' AND e.data->'item_ids' ? %s)", event,
    )  # fmt: skip
    assert together == [(1,)]
