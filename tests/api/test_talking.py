"""Saying something to an agent: accepted, waited for, streamed, attached to again."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from tests.api import turns
from tests.api.calls import Api
from tests.api.frames import Frame, frames_of, next_frame
from undivided.api.parts import Parts
from undivided.domain.outcomes import Failed
from undivided.store.hints import deltas_of
from undivided.store.log import Log


async def test_without_waiting_it_is_only_accepted(api: Api) -> None:
    await api.agent("ada")
    said = await api.post("/agents/ada/messages", {"text": "hi", "senderName": "Tom"})
    assert said["status"] == "queued"
    assert said["sessionId"] == "ses_ada"
    item = await api.get(f"/items/{said['itemId']}")
    assert item["sourceType"] == "human_chat"
    assert item["metadata"] == {"senderName": "Tom", "senderRole": "user"}


async def test_waiting_ends_with_the_reply(api: Api, log: Log) -> None:
    await api.agent("ada")
    asked = asyncio.create_task(
        api.post("/agents/ada/messages?wait=20", {"text": "hi", "sessionId": "s1"}, 200)
    )
    await api.until("/agents/ada/mailbox", lambda box: box["queueDepth"] == 1)
    await turns.whole_turn(log, "ada", "hello Tom")
    told = await asked
    assert (told["reply"], told["outcome"], told["sessionId"]) == ("hello Tom", "completed", "s1")


async def test_waiting_ends_without_a_reply_when_time_is_up(api: Api) -> None:
    await api.agent("ada")
    said = await api.post("/agents/ada/messages?wait=0.05", {"text": "hi"}, 202)
    assert "reply" not in said
    await api.post("/agents/ada/messages?wait=forever", {"text": "hi"}, 422)


async def test_a_failed_turn_says_so(api: Api, log: Log) -> None:
    await api.agent("ada")
    asked = asyncio.create_task(api.post("/agents/ada/messages?wait=20", {"text": "hi"}, 200))
    await api.until("/agents/ada/mailbox", lambda box: box["queueDepth"] == 1)
    flight = await turns.begin(log, "ada")
    await turns.finish(log, flight, "", Failed("refused", "no", retryable=False))
    told = await asked
    assert told["reply"] is None
    assert told["status"] == "dead_letter"


async def test_a_stream_shows_the_turn_as_it_goes_on(api: Api, log: Log, parts: Parts) -> None:
    await api.agent("ada")
    async with api.stream("POST", "/agents/ada/messages", json={"text": "hi"}) as answer:
        frames = frames_of(answer)
        start = await next_frame(frames)
        assert start.event == "session_start"
        assert start.data["sessionId"] == "ses_ada"
        flight = await turns.begin(log, "ada")
        parts.outlet.announce("ada")
        heard = asyncio.create_task(next_frame(frames))
        while not heard.done():
            parts.hints.publish(
                deltas_of(flight.turn.id), msgspec.json.encode({"step": 0, "text": "let"})
            )
            await asyncio.wait([heard], timeout=0.05)
        delta = heard.result()
        assert (delta.event, delta.data["text"], delta.id) == ("text_delta", "let", None)
        await turns.use_tool(log, flight, "look", "a bird")
        await turns.finish(log, flight, "it was a bird")
        parts.outlet.announce("ada")
        rest = [frame async for frame in frames if frame.id is not None]
    kinds = [frame.event for frame in rest]
    assert kinds == ["text_delta", "tool_start", "tool_end", "text_delta", "done"]
    assert rest[1].data["tool"] == "look"
    assert rest[2].data["content"] == "a bird"
    assert rest[3].data["text"] == "it was a bird"
    assert rest[4].data["reply"] == "it was a bird"


async def test_attaching_again_goes_on_behind_the_last_durable_frame(api: Api, log: Log) -> None:
    await api.agent("ada")
    async with api.stream("POST", "/agents/ada/messages", json={"text": "hi"}) as answer:
        start = await next_frame(frames_of(answer))
    flight = await turns.begin(log, "ada")
    await turns.use_tool(log, flight, "look", "a bird")
    await turns.finish(log, flight, "it was a bird")
    whole = await attached(api, start.id)
    assert [frame.event for frame in whole] == [
        "text_delta", "tool_start", "tool_end", "text_delta", "done",
    ]  # fmt: skip
    for number, frame in enumerate(whole):
        again = await attached(api, frame.id)
        assert again == (whole[number + 1 :] or whole[-1:])
    assert (await api.get("/agents/ada/mailbox"))["statusCounts"] == {"completed": 1}


async def attached(api: Api, last: str | None) -> list[Frame]:
    headers = {"last-event-id": last or ""}
    stream = api.stream("POST", "/agents/ada/messages", json={"text": "x"}, headers=headers)
    async with asyncio.timeout(10), stream as answer:
        return [frame async for frame in frames_of(answer)]


async def test_attaching_to_nothing_is_refused(api: Api) -> None:
    await api.agent("ada")
    for last, status in (("nonsense", 422), ("999-1", 404)):
        headers = {"last-event-id": last, "accept": "text/event-stream"}
        answer = await api.client.post(
            "/api/agents/ada/messages", json={"text": "x"}, headers=headers
        )
        assert answer.status_code == status


async def test_an_item_that_is_tried_again_is_followed_to_its_end(api: Api, log: Log) -> None:
    await api.agent("ada", policy={"retryBackoffS": [0]})
    async with api.stream("POST", "/agents/ada/messages", json={"text": "hi"}) as answer:
        frames = frames_of(answer)
        await next_frame(frames)
        flight = await turns.begin(log, "ada")
        follows = await turns.finish(log, flight, "", Failed("server_error", "x", retryable=True))
        assert follows is not None
        await turns.finish(log, follows, "at last")
        last = [frame async for frame in frames][-1]
    assert (last.event, last.data["reply"]) == ("done", "at last")


@pytest.mark.parametrize("how", ["wait", "stream"])
async def test_one_key_sends_one_message(api: Api, log: Log, how: str) -> None:
    await api.agent("ada")
    first = await api.post("/agents/ada/messages", {"text": "hi"}, key="k")
    await turns.whole_turn(log, "ada", "hello")
    if how == "wait":
        told = await api.post("/agents/ada/messages?wait=5", {"text": "hi"}, 200, key="k")
        assert (told["itemId"], told["reply"]) == (first["itemId"], "hello")
    else:
        headers = {"idempotency-key": "k"}
        stream = api.stream("POST", "/agents/ada/messages", json={"text": "hi"}, headers=headers)
        async with stream as answer:
            frames = [frame async for frame in frames_of(answer)]
        assert [f.event for f in frames] == ["session_start", "text_delta", "done"]
    assert (await api.get("/agents/ada/mailbox"))["statusCounts"] == {"completed": 1}
