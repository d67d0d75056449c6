"""Everything dies in the middle of turns, servers too; what comes back goes on."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.process.crew import call, lines, locked
from tests.process.running import Running, all_pids
from tests.process.seen import Seen
from undivided.cli.stack.spawn import alive, until
from undivided.domain.events.sessions import ModelResponded, ToolCallFinished, TurnEnded
from undivided.domain.outcomes import Completed
from undivided.store.checking import check
from undivided.store.database import Database

pytestmark = pytest.mark.process


@pytest.fixture
async def up(tmp_path: Path) -> AsyncIterator[Running]:
    running = Running(tmp_path)
    running.start("--workers", "1", UNDIVIDED_TEST_TOOLS="1")
    await running.ready()
    yield running
    running.close()


@asynccontextmanager
async def watched(up: Running) -> AsyncIterator[Seen]:
    """The database of a running service."""
    database = Database(up.run()["databaseUrl"], 2)
    await database.open()
    yield Seen(database, up.said)
    await database.close()


async def sound(up: Running) -> None:
    checked = await check(up.run()["databaseUrl"])
    assert [wrong.finding for wrong in checked.wrong] == []


async def post(up: Running, path: str, body: dict[str, Any]) -> dict[str, Any]:
    async with httpx.AsyncClient(base_url=f"{up.url}/api", timeout=10) as client:
        answer = (await client.post(path, json=body)).raise_for_status()
        made: dict[str, Any] = answer.json()
        return made


async def agent(up: Running, folder: Path, name: str, *rules: dict[str, Any]) -> None:
    """An agent whose model answers by `rules`."""
    script = folder / f"{name}.json"
    script.write_text(json.dumps({"rules": rules}), "utf-8")
    await post(up, "/agents", {"id": name, "name": name, "model": f"script:{script}"})


async def send(up: Running, name: str, content: str) -> str:
    body = {"sourceType": "human_chat", "payload": {"content": content}}
    return str((await post(up, f"/agents/{name}/mailbox", body))["itemId"])


async def test_all_of_it_at_once(up: Running, tmp_path: Path) -> None:
    """In a model call, in a tool, and in a wait: each turn ends, and nothing is asked twice."""
    append = call("test_append", path=str(tmp_path / "line"), line="x", effect="idempotent")
    rest = call("sleep", seconds=1)
    await agent(up, tmp_path, "thinks", {"reply": "so", "delay": 2})
    await agent(up, tmp_path, "works", {"step": 0, "calls": [append]}, {"reply": "so"})
    await agent(up, tmp_path, "rests", {"step": 0, "calls": [rest]}, {"reply": "so"})
    names = ("thinks", "works", "rests")
    async with watched(up) as seen:
        with locked(tmp_path / "line"):
            items = [await send(up, name, "go") for name in names]
            for name, state in zip(names, ("focused", "focused", "suspended"), strict=True):
                await seen.attention(name, state)
            await up.kill(*all_pids(up.run()))
    up.start("--workers", "1", UNDIVIDED_TEST_TOOLS="1")
    await up.ready()
    async with watched(up) as seen:
        await seen.over(*items)
        assert [one.outcome for one in await seen.events(TurnEnded)] == [Completed("so")] * 3
        assert [one.step for one in await seen.events(ModelResponded, "works")] == [0, 1]
        assert [one.step for one in await seen.events(ModelResponded, "rests")] == [0, 1]
        assert len(await seen.events(ToolCallFinished)) == 2
    assert lines(tmp_path / "line") == 1
    await sound(up)


async def test_one_server_after_the_other(up: Running, tmp_path: Path) -> None:
    """C84: Postgres in the middle of a turn, then Redis; accepting asks nothing of Redis."""
    await agent(up, tmp_path, "ada", {"reply": "so", "delay": 1.5})
    async with watched(up) as seen:
        first = await send(up, "ada", "one")
        await seen.attention("ada", "focused")
        postgres = up.run()["pids"]["postgres"]
        os.kill(postgres, signal.SIGKILL)
        await until(lambda: not alive(postgres), 10)
        await up.until(lambda: up.run()["pids"]["postgres"] != postgres)
        await up.until(lambda: _answers(up.url))
    async with watched(up) as seen:
        await seen.over(first)
        second = await send(up, "ada", "two")
        await seen.attention("ada", "focused")
        os.kill(up.run()["pids"]["valkey"], signal.SIGKILL)
        third = await send(up, "ada", "three")
        await seen.over(second, third)
        assert len(await seen.events(TurnEnded)) == 3
    await sound(up)


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/readyz", timeout=5).status_code == 200
    except httpx.HTTPError:
        return False
