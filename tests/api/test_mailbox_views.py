"""The mailbox as a timeline: statuses that items can be in, and how many are in each."""

from __future__ import annotations

from tests.api.calls import Api
from tests.api.turns import whole_turn
from undivided.domain.decisions import Decision
from undivided.domain.events.items import ItemDeferred, ItemDropped
from undivided.domain.recorded import Meta
from undivided.store.log import Log

BY = Meta(actor="test")
COMMENT = {"sourceType": "task_comment", "payload": {"content": "c", "taskId": "t1"}}


async def filled(api: Api, log: Log) -> dict[str, str]:
    """One item in each of these statuses."""
    await api.agent("ada", policy={"coalesceWindowMs": 0})
    ids = {"completed": (await api.chat("ada", "hello"))["itemId"]}
    await whole_turn(log, "ada", "so")
    ids["queued"] = (await api.post("/agents/ada/mailbox", COMMENT))["itemId"]
    ids["merged"] = (await api.post("/agents/ada/mailbox", COMMENT))["itemId"]
    for status in ("deferred", "dropped"):
        body = {"sourceType": "system_event", "payload": {"content": "patrol"}}
        ids[status] = (await api.post("/agents/ada/mailbox", body))["itemId"]
    async with log.locked("ada") as tx:
        put_off = ItemDeferred(
            agent_id="ada", item_id=ids["deferred"], epoch=1, by="agent", wait_s=3600,
            decision=Decision("dec_1", "defer", "asked", "later", {}, 1),
        )  # fmt: skip
        dropped = ItemDropped(
            agent_id="ada", item_id=ids["dropped"], reason="stale",
            decision=Decision("dec_2", "drop", "stale", "old", {}, 1),
        )  # fmt: skip
        await tx.append([tx.addition(put_off, dropped)], BY)
    return ids


async def test_every_status_is_counted_and_chosen(api: Api, log: Log) -> None:
    """All that were accepted are somewhere; now, and as it was."""
    ids = await filled(api, log)
    box = await api.get("/agents/ada/mailbox")
    assert box["statusCounts"] == dict.fromkeys(ids, 1)
    then = await api.get("/agents/ada/mailbox", at=box["position"])
    assert then["statusCounts"] == box["statusCounts"]
    for status, item_id in ids.items():
        for at in ("", f"&at={box['position']}"):
            chosen = await api.get(f"/agents/ada/mailbox?status={status}{at}")
            assert [one["id"] for one in chosen["history"]] == [item_id]
    both = await api.get("/agents/ada/mailbox?status=merged,dropped")
    assert {one["id"] for one in both["history"]} == {ids["merged"], ids["dropped"]}


async def test_what_merged_and_what_was_put_off_say_where_to(api: Api, log: Log) -> None:
    """The survivor, and the time."""
    ids = await filled(api, log)
    box = await api.get("/agents/ada/mailbox")
    shown = {one["id"]: one for one in box["history"]}
    assert shown[ids["merged"]]["mergedInto"] == ids["queued"]
    assert "deferredUntil" in shown[ids["deferred"]]
    assert "mergedInto" not in shown[ids["completed"]]
    mind = await api.get("/agents/ada/mind")
    assert [one["id"] for one in mind["deferredItems"]] == [ids["deferred"]]
    assert mind["deferredItems"][0]["deferredUntil"] == shown[ids["deferred"]]["deferredUntil"]


async def test_types_are_chosen_and_counted(api: Api, log: Log) -> None:
    """`sourceType` is another name of `type`; counting by type has to be asked for."""
    await filled(api, log)
    by_type = await api.get("/agents/ada/mailbox", type="system_event,human_chat")
    by_alias = await api.get("/agents/ada/mailbox", sourceType="system_event,human_chat")
    assert by_type["history"] == by_alias["history"]
    assert len(by_type["history"]) == 3
    assert "sourceTypeCounts" not in by_type
    task = await api.get("/agents/ada/mailbox", category="task", counts="sourceType")
    assert {one["sourceType"] for one in task["history"]} == {"task_comment"}
    assert task["sourceTypeCounts"] == {"system_event": 2, "human_chat": 1, "task_comment": 2}
    await api.get("/agents/ada/mailbox", 422, counts="everything")
