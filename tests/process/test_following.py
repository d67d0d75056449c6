"""`undivided tail` and `undivided replay` against a running service."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from tests.support.servers import environment_for
from tests.support.stack import Stack

pytestmark = pytest.mark.process


async def cli(stack: Stack, *arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "undivided", *arguments,
        env=environment_for(stack.settings) | {"UNDIVIDED_URL": stack.url},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip


async def answered(stack: Stack, *arguments: str) -> Any:
    process = await cli(stack, *arguments, "--json")
    out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    return json.loads(out)


@asynccontextmanager
async def following(stack: Stack, *arguments: str) -> AsyncIterator[AsyncIterator[Any]]:
    """The events that a running `undivided tail --json` prints."""
    process = await cli(stack, "tail", "--json", *arguments)

    async def events() -> AsyncIterator[Any]:
        assert process.stdout is not None
        async with asyncio.timeout(30):
            async for line in process.stdout:
                yield json.loads(line)

    try:
        yield events()
    finally:
        process.terminate()
        await process.wait()


async def talk(stack: Stack, *texts: str) -> list[Any]:
    """Say something to an agent and wait for each answer."""
    async with httpx.AsyncClient(base_url=f"{stack.url}/api", timeout=60) as client:
        (await client.post("/agents", json={"id": "ada", "name": "Ada"})).raise_for_status()
        return [
            (
                await client.post("/agents/ada/messages", params={"wait": 30}, json={"text": text})
            ).json()
            for text in texts
        ]


async def test_replay_shows_a_session_at_every_message(stack: Stack) -> None:
    replies = await talk(stack, "one", "two", "three")
    session = replies[0]["sessionId"]
    whole = await answered(stack, "replay", session)
    said = [message["content"] for message in whole["messages"]]
    assert said[::2] == ["one", "two", "three"]
    assert said[1::2] == [reply["reply"] for reply in replies]
    for number, message in enumerate(whole["messages"], start=1):
        then = await answered(stack, "replay", session, "--at", message["position"])
        assert [one["content"] for one in then["messages"]] == said[:number]


async def test_service_and_database_tell_the_same(stack: Stack) -> None:
    await talk(stack, "one")
    told = await answered(stack, "replay", "ada")
    stack.kill(stack.pids("api")[0])
    assert await answered(stack, "replay", "ada") == told


async def test_tail_tells_everything_once_and_in_order(stack: Stack) -> None:
    async with following(stack, "--from", "0-0") as events:
        talking = asyncio.create_task(talk(stack, "one", "two"))
        seen = []
        async for event in events:
            seen.append(event)
            if sum(one["type"] == "turn.ended" for one in seen) == 2:
                break
        await talking
    places = [tuple(map(int, event["position"].split("-"))) for event in seen]
    assert places == sorted(set(places))
    assert seen[0]["type"] == "agent.created"


async def test_tail_tells_only_what_was_asked_for(stack: Stack) -> None:
    await talk(stack, "one", "two")
    async with following(
        stack, "--from", "0-0", "--stream", "session:ses_ada", "--type", "turn.ended"
    ) as events:
        first, second = await anext(events), await anext(events)
    assert {first["type"], second["type"]} == {"turn.ended"}


async def test_tail_goes_on_after_the_service_was_away(stack: Stack) -> None:
    await talk(stack, "one")
    async with following(stack, "--from", "0-0", "--type", "item.accepted") as events:
        assert (await anext(events))["type"] == "item.accepted"
        stack.kill(stack.pids("api")[0])
        stack.start("api")
        await stack.ready()
        async with httpx.AsyncClient(base_url=f"{stack.url}/api", timeout=60) as client:
            body = {"text": "two"}
            (await client.post("/agents/ada/messages", json=body)).raise_for_status()
        assert (await anext(events))["data"]["payload"]["content"] == "two"
