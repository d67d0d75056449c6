"""Choosing among what waits, scripted, and seen through HTTP alone: everything real."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.acceptance.test_decisions import agent, decided, over, put
from tests.api.calls import Api
from tests.support.stack import Stack

pytestmark = pytest.mark.process


@pytest.fixture
async def live(stack: Stack) -> AsyncIterator[Api]:
    """A client of the running service."""
    async with httpx.AsyncClient(base_url=stack.url, timeout=30) as client:
        yield Api(client)


async def waiting(live: Api, folder: Path, number: int, **policy: Any) -> list[str]:
    """A stopped agent with several things to do, none more urgent than the others."""
    await agent(live, folder, "ada", {"reply": "so"}, policy=policy)
    await live.post("/agents/ada/stop", status=200)
    return [await put(live, "ada", "system_event", f"work {n}") for n in range(number)]


async def choose(live: Api, folder: Path, *rules: dict[str, Any]) -> None:
    """It is started, with a model that knows what to choose."""
    script = folder / "chooses.json"
    script.write_text(json.dumps({"rules": [*rules, {"reply": "so: {input}"}]}), "utf-8")
    answer = await live.client.patch("/api/agents/ada", json={"model": f"script:{script}"})
    assert answer.status_code == 200, answer.text
    await live.post("/agents/ada/start", status=200)


async def test_151_to_161_a_deliberation(live: Api, tmp_path: Path) -> None:
    """Two as a batch, one dealt with, one put off, one discarded; and one made more urgent."""
    one, two, done, later, gone = await waiting(live, tmp_path, 5)
    plan = {
        "process_item_ids": [two, one], "inline_completed_ids": [done], "defer_item_ids": [later],
        "drop_item_ids": [gone], "batch_context": "together", "reasoning": "as asked",
        "memory_updates": [{"key": "k", "content": "kept", "type": "longterm"}],
    }  # fmt: skip
    first = {"tool": "prioritize_mailbox_item", "args": {"item_id": later, "priority": 4}}
    await choose(
        live, tmp_path,
        {"scenario": "deliberation", "step": 0, "reply": "", "calls": [first]},
        {"scenario": "deliberation", "reply": "",
         "calls": [{"tool": "complete_deliberation", "args": plan}]},
    )  # fmt: skip
    ends = {name: await over(live, name) for name in (one, two, done, later, gone)}
    assert [ends[name]["status"] for name in (one, two, done, later, gone)] == [
        "completed", "completed", "completed", "completed", "dropped",
    ]  # fmt: skip
    assert ends[one]["turnId"] == ends[two]["turnId"] != ends[later]["turnId"]
    assert ends[later]["priority"] == 4
    mind = await live.get("/agents/ada/mind")
    triage = mind["lastTriage"]
    assert (triage["processItemId"], triage["batchItemIds"]) == (two, [one])
    assert (triage["inlineCompletedIds"], triage["deferItemIds"]) == ([done], [later])
    assert [what for what, _ in await decided(live, "ada")].count("triage") == 1
    known = await live.get("/agents/ada/knowledge", q="kept")
    assert [row["key"] for row in known["items"]] == ["k"]
    story = " ".join(line["text"] for line in (await live.get(f"/items/{two}/why"))["sentences"])
    assert "as asked" in story


@pytest.mark.parametrize(
    "answer",
    ["{}", "", '{"processItemId": "mbx_unknown", "reasoning": "so"}', '{"processItemId": "mbx'],
)
async def test_bad_mini_triage_leaves_it_to_order(live: Api, tmp_path: Path, answer: str) -> None:
    """Nothing, half a JSON, unknown ids: the oldest first, and nothing stays at work."""
    ids = await waiting(live, tmp_path, 2, triage="mini")
    await choose(live, tmp_path, {"scenario": "deliberation", "reply": answer, "marker": False})
    ends = [await over(live, one) for one in ids]
    assert [one["status"] for one in ends] == ["completed", "completed"]
    assert ends[0]["startedAt"] < ends[1]["startedAt"]
    assert ("triage", "without_plan") in await decided(live, "ada")


async def test_169_mini_triage(live: Api, tmp_path: Path) -> None:
    """The last first, as the model says."""
    ids = await waiting(live, tmp_path, 2, triage="mini")
    choice = {"processItemId": ids[1], "deferItemIds": [ids[0]], "reasoning": "so"}
    said = f"<think>well</think> {json.dumps(choice)}"
    await choose(live, tmp_path, {"scenario": "deliberation", "reply": said, "marker": False})
    ends = [await over(live, one) for one in ids]
    assert ends[1]["startedAt"] < ends[0]["startedAt"]
    assert ("triage", "mini_triage") in await decided(live, "ada")
