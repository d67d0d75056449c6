"""The surface with real workers behind it: replies, streams and leaving in order."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.api.calls import Api
from tests.api.frames import frames_of, next_frame
from tests.support.stack import Stack

pytestmark = pytest.mark.process

SCRIPT = """
rules:
  - {contains: look, step: 0, reply: "let me see", calls: [{tool: test_return, args: {value: bird}}]}
  - {contains: look, step: 1, reply: "a bird, I think", chunks: 4, delay: 0.2}
  - {contains: slow, reply: "at last", delay: 60}
  - {contains: soon, reply: "here", delay: 1}
"""  # noqa: E501 one rule a line


@pytest.fixture
async def live(stack: Stack) -> AsyncIterator[Api]:
    """A client of the running service."""
    async with httpx.AsyncClient(base_url=stack.url, timeout=30) as client:
        yield Api(client)


@pytest.fixture
def scripted(tmp_path: Path) -> dict[str, Any]:
    """An agent that answers by a script."""
    script = tmp_path / "script.yaml"
    script.write_text(SCRIPT, encoding="utf-8")
    return {"model": f"script:{script}"}


async def test_a_message_is_answered(live: Api) -> None:
    await live.agent("ada")
    told = await live.post("/agents/ada/messages?wait=20", {"text": "hello"}, 200)
    assert told["outcome"] == "completed"
    assert told["reply"]
    page = await live.get("/sessions/ses_ada/messages")
    assert [m["role"] for m in page["items"]] == ["user", "assistant"]
    assert page["items"][1]["content"] == told["reply"]


async def test_a_reply_is_watched_while_a_worker_writes_it(
    live: Api, scripted: dict[str, Any]
) -> None:
    """Pieces come from another process, without ids; what they say together is the reply."""
    await live.agent("ada", **scripted)
    async with live.stream("POST", "/agents/ada/messages", json={"text": "look"}) as answer:
        frames = [frame async for frame in frames_of(answer)]
    kinds = [frame.event for frame in frames]
    assert kinds[0] == "session_start"
    assert kinds[-1] == "done"
    assert kinds.index("tool_start") < kinds.index("tool_end")
    pieces = [f for f in frames if f.event == "text_delta" and f.data["step"] == 1]
    assert "".join(f.data["text"] for f in pieces) == "a bird, I think"
    assert frames[-1].data["reply"] == "a bird, I think"
    assert any(piece.id is None for piece in pieces)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/agents/ada/pause", None),
        ("PATCH", "/agents/ada", {"policy": {"itemMaxRetries": 1}}),
        ("PATCH", "/agents/ada", {"name": "Ada L."}),
    ],
)
async def test_what_is_no_stop_lets_the_turn_at_work_finish(
    live: Api, scripted: dict[str, Any], method: str, path: str, body: dict[str, Any] | None
) -> None:
    """Pausing or configuring an agent breaks no call off."""
    await live.agent("ada", **scripted)
    waiting = asyncio.create_task(live.post("/agents/ada/messages?wait=20", {"text": "soon"}, 200))
    await live.until("/agents/ada/mind", lambda mind: mind["attentionState"] == "focused")
    changed = await live.client.request(method, f"/api{path}", json=body)
    assert changed.json()["attentionState"] == "focused"
    told = await waiting
    assert (told["outcome"], told["reply"]) == ("completed", "here")


async def test_a_process_that_leaves_ends_its_streams(
    live: Api, stack: Stack, scripted: dict[str, Any]
) -> None:
    """SIGTERM: streams and waits end at once, and go on elsewhere behind the last durable frame."""
    await live.agent("ada", **scripted)
    async with (
        live.stream("GET", "/events/stream?after=0-0") as log,
        live.stream("POST", "/agents/ada/messages", json={"text": "slow"}) as talk,
    ):
        await next_frame(frames_of(log))
        talking = frames_of(talk)
        start = await next_frame(talking)
        waiting = asyncio.create_task(
            live.post("/agents/ada/messages?wait=60", {"text": "slow"}, 202)
        )
        await live.until("/agents/ada/mailbox", lambda box: len(box["history"]) == 2)
        [pid] = stack.pids("api")
        stack.kill(pid, signal.SIGTERM)
        async with asyncio.timeout(8):
            await waiting
            assert [frame async for frame in talking] == []
            while stack.pids("api"):
                await asyncio.sleep(0.02)
    stack.start("api")
    await stack.ready()
    await live.post("/sessions/ses_ada/stop", status=200)
    headers = {"last-event-id": start.id or ""}
    stream = live.stream("POST", "/agents/ada/messages", json={"text": "x"}, headers=headers)
    async with asyncio.timeout(20), stream as answer:
        last = [frame async for frame in frames_of(answer)][-1]
    assert last.data["outcome"] == "cancelled"
