"""What agents did and know over HTTP: by type, in pages, and as it was at any coordinate."""

from __future__ import annotations

from typing import Any

from tests.api.calls import Api
from tests.api.test_callbacks import happened
from tests.races.hand import hired
from tests.races.test_deliberation import plan
from tests.races.test_interrupts import send
from undivided.domain.events.agents import KnowledgeSaved
from undivided.store.log import Log
from undivided.store.settings import Settings


async def pages(api: Api, path: str, **query: Any) -> list[dict[str, Any]]:
    """Everything of a list, two at a time."""
    found, cursor = [], None
    while True:
        more: dict[str, Any] = {} if cursor is None else {"cursor": cursor}
        page = await api.get(path, limit=2, **query, **more)
        found += page["items"]
        cursor = page["nextCursor"]
        if cursor is None:
            return found


async def test_activities_are_listed_by_type(api: Api, log: Log, settings: Settings) -> None:
    """One type or several, page by page, now and then."""
    await api.agent("ada", policy={"coalesceWindowMs": 0, "triage": "off"})
    for source_type in ("heartbeat", "mention", "system_event", "callback_result", "a2a_message"):
        await send(log, source_type, "this")
    async with hired(settings) as hand:
        await hand.attend("ada")
    path = "/agents/ada/activities"
    assert [one["type"] for one in await pages(api, path)] == [
        "heartbeat", "a2a", "internal", "internal", "chat",
    ]  # fmt: skip
    for types, number in (("internal", 2), ("chat,a2a", 2), ("heartbeat", 1), ("other", 0)):
        assert len(await pages(api, path, type=types)) == number, types
    now = await api.get(path, type="internal")
    assert (await api.get(path, type="internal", at=now["position"]))["items"] == now["items"]


async def test_what_a_plan_takes_together_is_one_activity(
    api: Api, log: Log, settings: Settings
) -> None:
    """Each of its items shows it; the deliberation before it is an activity of no item's."""
    await api.agent("ada")
    ids = [await send(log, "system_event", f"work {n}") for n in range(3)]
    async with hired(settings) as hand:
        hand.model.calls = [
            plan(process_item_ids=[ids[1], ids[0]], inline_completed_ids=[ids[2]], reasoning="so")
        ]
        await hand.attend("ada")
    listed = await api.get("/agents/ada/activities")
    together, considered = listed["items"]
    assert (together["type"], considered["type"]) == ("internal", "deliberation")
    assert together["mailboxItemId"] == ids[1]
    box = await api.get("/agents/ada/mailbox")
    history = {one["id"]: one for one in box["history"]}
    for item_id in ids[:2]:
        assert history[item_id]["activity"]["id"] == together["id"]
        item = await api.get(f"/items/{item_id}")
        assert (item["sessionId"], item["turnId"]) == (together["sessionId"], together["id"])
    assert history[ids[2]]["activity"] is None
    assert (await api.get(f"/items/{ids[2]}"))["turnId"] == considered["id"]
    for path in ("/agents/ada/activities", "/agents/ada/mailbox"):
        now = await api.get(path)
        then = await api.get(path, at=now["position"])
        assert then == now, path


async def test_knowledge_comes_in_pages(api: Api, log: Log) -> None:
    """All of it once, the newest first; and what fits, now as then, by the same rules."""
    await api.agent("ada")
    texts = ("the kettle boils at noon", "noon is when the bus comes", "the bus is red", "at noon")
    for number, content in enumerate(texts):
        saved = KnowledgeSaved(
            agent_id="ada", kind="note", key=f"k{number}", content=content, turn_id=None
        )
        await happened(log, saved)
    path, at = "/agents/ada/knowledge", (await api.get("/agents/ada/knowledge"))["position"]
    for when in ({}, {"at": at}):
        keys = [one["key"] for one in await pages(api, path, **when)]
        assert keys == ["k3", "k2", "k1", "k0"]
        for words, fitting in (
            ('"at noon"', {"k0", "k3"}), ("noon -kettle", {"k1", "k3"}),
            ("kettle or red", {"k0", "k2"}), ("oon", set()), ("", {"k0", "k1", "k2", "k3"}),
        ):  # fmt: skip
            found = await pages(api, path, q=words, **when)
            assert {one["key"] for one in found} == fitting, (words, when)
            assert len(found) == len(fitting)
    await api.get(path, 422, q="x" * 1001)
    await api.get(path, 422, cursor="LTE=")
