"""Each decision about what arrives, scripted, and seen through HTTP alone: everything real."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.api.calls import Api
from tests.support.stack import Stack

pytestmark = pytest.mark.process

OVER = ("completed", "cancelled", "dead_letter", "merged", "dropped")
NAP = {"tool": "test_sleep", "args": {"seconds": 1}}
GO_ON = ("continue", "delegate", "drop", '{"decision": "canc', "")


@pytest.fixture
async def live(stack: Stack) -> AsyncIterator[Api]:
    """A client of the running service."""
    async with httpx.AsyncClient(base_url=stack.url, timeout=30) as client:
        yield Api(client)


async def agent(live: Api, folder: Path, name: str, *rules: dict[str, Any], **more: Any) -> None:
    """An agent whose model answers by `rules`."""
    script = folder / f"{name}.json"
    script.write_text(json.dumps({"rules": list(rules)}), "utf-8")
    await live.agent(name, model=f"script:{script}", **more)


async def put(live: Api, name: str, kind: str, content: str, **payload: Any) -> str:
    """Put a stimulus into a mailbox; answers the item's id."""
    body = {"sourceType": kind, "payload": {"content": content, **payload}}
    return str((await live.post(f"/agents/{name}/mailbox", body))["itemId"])


async def in_a_tool(live: Api, name: str) -> None:
    """Wait until the agent's turn is inside a tool."""
    events = f"/events?type=tool_call.started&stream={await session_of(live, name)}"
    await live.until(events, lambda page: bool(page["items"]))


async def session_of(live: Api, name: str) -> str:
    """The stream of the session that the agent's turn is in."""
    mind = await live.until(f"/agents/{name}/mind", lambda mind: mind["currentFocus"])
    return f"session:{mind['currentFocus']['sessionId']}"


async def over(live: Api, item_id: str) -> dict[str, Any]:
    """The item, once it is over."""
    item: dict[str, Any] = await live.until(
        f"/items/{item_id}", lambda one: one["status"] in OVER, 30
    )
    return item


async def at_work(live: Api, folder: Path, name: str, *rules: dict[str, Any]) -> str:
    """An agent that is inside a tool of a review; answers the item's id."""
    nap = {"contains": "work", "step": 0, "reply": "", "calls": [NAP]}
    await agent(live, folder, name, *rules, nap, {"reply": "so"})
    item = await put(live, name, "review_request", "work")
    await in_a_tool(live, name)
    return item


async def decided(live: Api, name: str) -> list[tuple[str, str]]:
    """What was decided and by which rule."""
    page = await live.get(f"/agents/{name}/decisions", limit="100")
    return [(one["decisionType"], one["rule"]) for one in page["items"]]


async def judged(live: Api, folder: Path, name: str, rule: dict[str, Any]) -> tuple[Any, ...]:
    """What became of the work and of what a judge read, and what was decided."""
    work = await at_work(live, folder, name, {"scenario": "judge", **rule})
    new = await put(live, name, "review_request", "new")
    ends = await over(live, work), await over(live, new)
    mind = await live.until(f"/agents/{name}/mind", lambda one: one["attentionState"] == "idle")
    assert (mind["mailboxDepth"], mind["deferredItems"]) == (0, [])
    return tuple(one["status"] for one in ends), await decided(live, name)


async def test_107_to_112_each_word_of_a_judge(live: Api, tmp_path: Path) -> None:
    """And what is no word, nothing at all, and a model that fails: the turn goes on."""
    words = ("preempt", "cancel", "merge", "defer", *GO_ON)
    rules: list[dict[str, Any]] = [{"reply": word, "marker": False} for word in words]
    rules.append({"error": "server_error"})
    told = await asyncio.gather(
        *(judged(live, tmp_path, f"a{n}", rule) for n, rule in enumerate(rules))
    )
    both = ("completed", "completed")
    for (statuses, decisions), word in zip(told[:4], words[:4], strict=True):
        expected = {"cancel": ("cancelled", "completed"), "merge": ("completed", "merged")}
        assert (word, statuses) == (word, expected.get(word, both))
        assert (word, "judge") in decisions
    for statuses, decisions in told[4:]:
        assert statuses == both
        assert {what for what, _ in decisions} <= {"pick", "continue", "complete"}


async def test_120_the_cancel_button(live: Api, tmp_path: Path) -> None:
    """The turn at work ends for good, within the call that it is in; what waits is handled."""
    work = await at_work(live, tmp_path, "ada")
    new = await put(live, "ada", "heartbeat", "patrol")
    await live.post("/agents/ada/cancel-processing", status=200)
    assert (await over(live, work))["status"] == "cancelled"
    assert (await over(live, new))["status"] == "completed"
    assert (await live.get("/agents/ada"))["status"] == "started"


async def test_141_stopped_and_started_again(live: Api, tmp_path: Path) -> None:
    """The item waits meanwhile, and nothing is picked."""
    work = await at_work(live, tmp_path, "ada")
    await live.post("/agents/ada/stop", status=200)
    await live.until(f"/items/{work}", lambda one: one["status"] == "queued")
    await live.post("/agents/ada/start", status=200)
    assert (await over(live, work))["outcome"] == "completed"


async def test_the_agent_puts_its_mail_in_order(live: Api, tmp_path: Path) -> None:
    """Put off and back, and dropped, by its own tools: what is put off waits for the rest."""
    await agent(live, tmp_path, "ada", {"reply": "so"})
    await live.post("/agents/ada/pause", status=200)
    ids = [await put(live, "ada", kind, kind) for kind in
           ("review_request", "heartbeat", "daily_report")]  # fmt: skip
    later, gone, first = ids
    tools = [
        {"tool": "defer_mailbox_item", "args": {"item_id": later, "reason": "not yet"}},
        {"tool": "drop_mailbox_item", "args": {"item_id": gone, "reason": "no use"}},
    ]
    tidy = [{"contains": "tidy", "step": 0, "reply": "", "calls": tools}, {"reply": "so"}]
    (tmp_path / "ada.json").write_text(json.dumps({"rules": tidy}), "utf-8")
    await put(live, "ada", "human_chat", "tidy")
    await live.post("/agents/ada/start", status=200)
    ends = {one: (await over(live, one))["status"] for one in ids}
    assert ends == {later: "completed", gone: "dropped", first: "completed"}
    for kind, item in (
        ("item.deferred", later), ("item.resurfaced", later), ("item.dropped", gone),
    ):  # fmt: skip
        told = (await live.get("/events", type=kind))["items"]
        assert (kind, [one["data"]["itemId"] for one in told]) == (kind, [item])
    picked = (await live.get("/events", type="item.picked"))["items"]
    assert [one["data"]["itemId"] for one in picked][1:] == [first, later]


async def test_233_an_answer_for_what_is_unknown_is_refused(live: Api, tmp_path: Path) -> None:
    """Late, twice and unknown; the turn that asked is over all the same."""
    ask = {"tool": "request_user_approval", "args": {"title": "Go?", "description": "now"}}
    await agent(live, tmp_path, "ada", {"step": 0, "reply": "", "calls": [ask]}, {"reply": "so"})
    work = await put(live, "ada", "system_event", "work")
    page = await live.until("/approvals?status=pending", lambda page: page["items"])
    path = f"/approvals/{page['items'][0]['id']}"
    await live.post("/approvals/apr_of_another_tenant", {"approved": True}, 404)
    await live.post(path, {"approved": True}, 200)
    assert (await over(live, work))["status"] == "completed"
    assert (await live.post(path, {"approved": False}, 409))["code"] == "approval_answered"


BAD: dict[str, list[dict[str, Any]]] = {
    "raises": [{"tool": "test_fail", "args": {"message": "broken"}}],
    "hangs": [{"tool": "test_sleep", "args": {"seconds": 3600}}],
    "floods": [{"tool": "test_big", "args": {"bytes": 300 * 2**20}}],
    "nul": [{"tool": "test_return", "args": {"value": "a\x00b"}}],
    "unknown": [{"tool": "no_such_tool", "args": {}}],
}


async def test_bad_tools_leave_nothing_in_processing(live: Api, tmp_path: Path) -> None:
    """The model reads what went wrong, and the turn goes on to its end."""
    for name, calls in BAD.items():
        await agent(
            live, tmp_path, name, {"step": 0, "reply": "", "calls": calls}, {"reply": "so"},
            policy={"toolTimeoutS": 5},
        )  # fmt: skip
    items = [await put(live, name, "system_event", "work") for name in BAD]
    assert [(await over(live, item))["status"] for item in items] == ["completed"] * len(BAD)
    for name in BAD:
        mind = await live.get(f"/agents/{name}/mind")
        assert (mind["attentionState"], mind["mailboxDepth"]) == ("idle", 0)
