"""Merging and interrupts through the HTTP surface."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.api.calls import Api
from tests.api.frames import frames_of
from tests.support.stack import Stack

SCRIPT = """
rules:
  - {contains: work, step: 0, reply: "", calls: [{tool: test_sleep, args: {seconds: 1}}]}
  - {contains: work, step: 1, reply: "work is done"}
  - {contains: more, reply: "with more"}
  - {contains: hello, reply: "hello to you"}
"""


def comment(text: str, **more: Any) -> dict[str, Any]:
    """A comment on one task."""
    return {"sourceType": "task_comment", "payload": {"content": text, "taskId": "t1"}, **more}


async def test_comments_on_one_task_become_one_item(api: Api) -> None:
    """Each has an id of its own; what is asked for shows all of them."""
    await api.agent("ada")
    first = await api.post("/agents/ada/mailbox", comment("one"))
    second = await api.post("/agents/ada/mailbox", comment("two"))
    assert first["status"] == "queued"
    assert (second["status"], second["mergedInto"]) == ("merged", first["itemId"])
    item = await api.get(f"/items/{first['itemId']}")
    assert item["payload"]["content"] == "one\n\n---\n\ntwo"
    assert item["payload"]["summary"] == "one (+1)"
    assert item["mergedFrom"] == [second["itemId"]]
    merged = await api.get(f"/items/{second['itemId']}")
    assert (merged["status"], merged["mergedInto"]) == ("merged", first["itemId"])
    mind = await api.get("/agents/ada/mind")
    assert [one["summary"] for one in mind["queuedItems"]] == ["one (+1)"]
    before = await api.get(f"/items/{first['itemId']}", at=first["position"])
    assert before["payload"] == {"content": "one", "taskId": "t1"}


async def test_a_batch_of_comments_is_one_item(api: Api) -> None:
    """Also within one transaction."""
    await api.agent("ada")
    burst = {"items": [comment(f"c{n}") for n in range(1000)]}
    answer = await api.post("/agents/ada/mailbox:batch", burst)
    assert [one["status"] for one in answer["items"]] == ["queued", *["merged"] * 999]
    box = await api.get("/agents/ada/mailbox")
    assert box["queueDepth"] == 1
    item = await api.get(f"/items/{answer['items'][0]['itemId']}")
    assert item["payload"]["content"].split("\n\n---\n\n") == [f"c{n}" for n in range(1000)]


async def test_040_a_channel_shows_who_said_what(api: Api) -> None:
    """Three senders, in order, each with the moment at which it came."""
    await api.agent("ada")

    def message(text: str, sender: str) -> dict[str, Any]:
        extra = {"channelKey": "group:dev", "senderName": sender}
        return {"sourceType": "a2a_message", "payload": {"content": text, "extra": extra}}

    said = [("Hello", "Alice"), ("Hey", "Bob"), ("Hi", "Charlie")]
    first, *_ = [await api.post("/agents/ada/mailbox", message(*one)) for one in said]
    item = await api.get(f"/items/{first['itemId']}")
    messages = item["payload"]["extra"]["messages"]
    assert [(one["content"], one["senderName"]) for one in messages] == said
    assert messages[0]["timestamp"] == item["queuedAt"]
    assert item["payload"]["summary"] == "Hello (+2)"


async def test_a_mailbox_counts_what_joined_and_what_went(api: Api) -> None:
    """All that was accepted is somewhere, now and at any moment."""
    await api.agent("ada")
    first = await api.post("/agents/ada/mailbox", comment("one"))
    await api.post("/agents/ada/mailbox", comment("two"))
    beat = {"sourceType": "heartbeat", "payload": {"content": "tick"}}
    await api.post("/agents/ada/mailbox", beat)
    last = await api.post("/agents/ada/mailbox", beat)
    counts = {"queued": 2, "merged": 1, "dropped": 1}
    for moment in ({}, {"at": last["position"]}):
        box = await api.get("/agents/ada/mailbox", **moment)
        assert box["statusCounts"] == counts
        joined = [one for one in box["history"] if one["status"] == "merged"]
        assert [one["mergedInto"] for one in joined] == [first["itemId"]]
        assert [one["summary"] for one in box["queued"]] == ["one (+1)", "tick"]


@pytest.mark.process
class TestWithWorkers:
    """Against the running service."""

    @pytest.fixture
    async def live(self, stack: Stack) -> AsyncIterator[Api]:
        """A client of it."""
        async with httpx.AsyncClient(base_url=stack.url, timeout=30) as client:
            yield Api(client)

    @pytest.fixture
    async def scripted(self, live: Api, tmp_path: Path) -> Api:
        """With an agent that works for a while, and is answered for by a script."""
        script = tmp_path / "script.yaml"
        script.write_text(SCRIPT, encoding="utf-8")
        await live.agent("ada", model=f"script:{script}")
        return live

    async def working(self, api: Api, body: dict[str, Any]) -> str:
        """The agent works on a stimulus, in a tool."""
        accepted = await api.post("/agents/ada/mailbox", body)

        def in_a_tool(events: Any) -> bool:
            return bool(events["items"])

        await api.until("/events?type=tool_call.started", in_a_tool)
        return str(accepted["itemId"])

    async def test_a_burst_is_one_turn(self, scripted: Api) -> None:
        """Held for the window, then handled once."""
        first = await scripted.post("/agents/ada/mailbox", comment("hello"))
        await scripted.post("/agents/ada/mailbox", comment("hello again"))
        done = await scripted.until(
            f"/items/{first['itemId']}", lambda item: item["status"] == "completed"
        )
        assert done["attempts"] == 1
        turns = await scripted.get("/events", type="turn.started")
        assert [one["data"]["input"] for one in turns["items"]] == ["hello\n\n---\n\nhello again"]

    async def test_129_132_147_a_person_preempts_and_work_comes_back(self, scripted: Api) -> None:
        """The person is answered first; the tool ran once."""
        body = {"sourceType": "system_event", "payload": {"content": "work"}}
        item_id = await self.working(scripted, body)
        told = await scripted.post("/agents/ada/messages?wait=20", {"text": "hello"}, 200)
        assert told["reply"] == "hello to you"
        done = await scripted.until(f"/items/{item_id}", lambda item: item["status"] == "completed")
        assert (done["outcome"], done["attempts"]) == ("completed", 1)
        started = await scripted.get("/events", type="tool_call.started")
        assert len(started["items"]) == 1

    async def test_048_245_a_merged_message_is_answered(self, scripted: Api) -> None:
        """R0a: by the turn that it went into; a stream is told where it went."""
        body = {
            "sourceType": "human_chat", "payload": {"content": "work"},
            "metadata": {"senderId": "bob", "senderRole": "user"},
        }  # fmt: skip
        item_id = await self.working(scripted, body)
        more = {"text": "more of it", "senderId": "bob"}
        told = asyncio.create_task(scripted.post("/agents/ada/messages?wait=20", more, 200))
        streamed = {"text": "and more", "senderId": "bob"}
        async with scripted.stream("POST", "/agents/ada/messages", json=streamed) as answer:
            frames = [frame async for frame in frames_of(answer)]
        last = frames[-1]
        assert (last.event, last.data["merged"], last.data["mergedInto"]) == ("done", True, item_id)
        answered = await told
        assert answered["mergedInto"] == item_id
        assert answered["outcome"] == "completed"
        assert answered["reply"] == "with more"
