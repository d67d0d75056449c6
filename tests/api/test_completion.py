"""What people get of replies with and without the completion marker, from real workers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.api.calls import Api
from tests.api.frames import frames_of
from tests.support.stack import Stack
from undivided.domain.outcomes import MARKER_MISSING

pytestmark = pytest.mark.process

SCRIPT = """
rules:
  - {contains: bare, reply: "half an answer", marker: false}
  - {contains: streamed, reply: "one two three\\n<<HANDLE_COMPLETE>>", chunks: 12}
  - {contains: loose, reply: "done < handle_complete >", marker: false}
"""


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


async def incomplete(live: Api) -> list[dict[str, Any]]:
    """The traces of unusable answers."""
    page = await live.get("/events?type=agent.incomplete")
    return [event["data"] for event in page["items"]]


@pytest.mark.parametrize(("text", "reply"), [("bare", "half an answer"), ("loose", "done")])
async def test_84_who_waits_has_what_was_said(
    live: Api, scripted: dict[str, Any], text: str, reply: str
) -> None:
    """With the outcome that says that it may not be all; told once in the log."""
    await live.agent("ada", **scripted)
    told = await live.post("/agents/ada/messages?wait=20", {"text": text}, 200)
    assert (told["outcome"], told["reply"]) == ("incomplete", reply)
    (trace,) = await incomplete(live)
    assert (trace["itemId"], trace["sourceType"]) == (told["itemId"], "human_chat")
    assert trace["reason"] == MARKER_MISSING


async def test_199_no_reader_sees_the_marker(live: Api, scripted: dict[str, Any]) -> None:
    """Neither in pieces, nor in the reply, nor in the transcript."""
    await live.agent("ada", **scripted)
    said = {"text": "streamed"}
    async with live.stream("POST", "/agents/ada/messages", json=said) as answer:
        frames = [frame async for frame in frames_of(answer)]
    shown = ""
    for frame in frames:
        if frame.event == "text_delta":  # the first pieces may have come before the reader
            shown = ("" if frame.data.get("restart") else shown) + frame.data["text"]
    assert shown == "one two three"
    assert frames[-1].event == "done"
    assert frames[-1].data["reply"] == "one two three"
    page = await live.get("/sessions/ses_ada/messages")
    assert [one["content"] for one in page["items"]] == ["streamed", "one two three"]
    assert await incomplete(live) == []
