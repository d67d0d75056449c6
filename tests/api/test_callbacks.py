"""Callbacks, wakeups and knowledge over HTTP: now, and as they were."""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.calls import Api
from undivided.domain.callbacks import (
    Asking,
    RunInBackground,
    ScheduleWakeup,
    background,
    wakeup,
)
from undivided.domain.events.agents import KnowledgeRemoved, KnowledgeSaved
from undivided.domain.events.catalogue import Event
from undivided.domain.recorded import Meta
from undivided.store.commands.callbacks import fire
from undivided.store.commands.outlet import Outlet
from undivided.store.doorbell import Doorbell
from undivided.store.hints import Hints
from undivided.store.log import Log


async def happened(log: Log, *events: Event) -> None:
    """Some events of an agent, as its tools leave them."""
    async with log.locked("ada") as tx:
        await tx.append([tx.addition(*events)], Meta(actor="test"))


async def scheduled(log: Log, name: str, **wish: Any) -> None:
    act = ScheduleWakeup(
        in_s=wish.get("in_s"), at=wish.get("at"), recurring_s=wish.get("every_s"),
        note=wish.get("note", ""), delivery="mailbox",
    )  # fmt: skip
    now = log.database.clock.now()
    await happened(log, wakeup(act, Asking("ada", "trn_1", "ses_ada", name), now))


async def test_what_an_agent_will_hear_of(api: Api, log: Log) -> None:
    """Wakeups and processes, newest first; by status, type and agent; page by page."""
    await api.agent("ada")
    await scheduled(log, "wake_1", in_s=3600, note="look again")
    asking = Asking("ada", "trn_1", "ses_ada", "bg_1")
    await happened(log, background(RunInBackground("make test", 5), asking, "h1"))
    page = await api.get("/callbacks")
    assert [(one["id"], one["status"]) for one in page["items"]] == [
        ("bg_1", "pending"), ("wake_1", "pending"),
    ]  # fmt: skip
    assert page["items"][0]["label"] == "make test"
    assert page["items"][1]["wakeAt"] is not None
    first = await api.get("/callbacks", limit=1)
    rest = await api.get("/callbacks", limit=1, cursor=first["nextCursor"])
    assert [one["id"] for one in rest["items"]] == ["wake_1"]
    only = await api.get("/callbacks?type=wakeup&status=pending&agentId=ada")
    assert [one["id"] for one in only["items"]] == ["wake_1"]
    assert (await api.get("/callbacks", agentId="bob"))["items"] == []
    await api.get("/callbacks?status=soon", 422)
    beat = await api.get("/agents/ada/heartbeat")
    assert [one["id"] for one in beat["wakeups"]] == ["wake_1"]
    assert [one["label"] for one in beat["pendingCallbacks"]] == ["make test"]
    assert beat["nextWakeAt"] <= beat["wakeups"][0]["wakeAt"]


async def test_a_wakeup_as_it_was(api: Api, log: Log) -> None:
    """A recurring one has had other moments; one that came was to come."""
    await api.agent("ada")
    await scheduled(log, "wake_1", at="2020-01-01T00:00:00Z", every_s=60)
    before = (await api.get("/callbacks"))["position"]
    outlet = Outlet(log, Doorbell("redis://127.0.0.1:1", "n"), Hints("redis://127.0.0.1:1", "n"))
    async with log.locked("ada") as tx:
        row = await tx.row("callbacks", "wake_1")
    assert row is not None
    assert await fire(outlet, row)
    (now,) = (await api.get("/callbacks"))["items"]
    (then,) = (await api.get("/callbacks", at=before))["items"]
    assert then["wakeAt"].startswith("2020-01-01T00:00:00")
    assert now["wakeAt"] > then["wakeAt"]
    await api.delete("/agents/ada/wakeups/wake_1")
    assert (await api.get("/callbacks?status=pending"))["items"] == []
    assert len((await api.get(f"/callbacks?status=pending&at={before}"))["items"]) == 1


@pytest.mark.parametrize("path", ["ada/wakeups/bg_1", "ada/wakeups/nope", "bob/wakeups/wake_1",
                                  "ada/wakeups/%00", "nobody/wakeups/wake_1"])  # fmt: skip
async def test_only_its_own_wakeups_are_taken_back(api: Api, log: Log, path: str) -> None:
    """Of that agent, and of that type."""
    for agent_id in ("ada", "bob"):
        await api.agent(agent_id)
    await scheduled(log, "wake_1", in_s=3600)
    asking = Asking("ada", "trn_1", "ses_ada", "bg_1")
    await happened(log, background(RunInBackground("make test", 5), asking, "h1"))
    await api.delete(f"/agents/{path}", 404)
    assert len((await api.get("/callbacks?status=pending"))["items"]) == 2


async def test_what_an_agent_knows(api: Api, log: Log) -> None:
    """By its words, by kind, and as it was."""
    await api.agent("ada")
    for kind, key, content in (
        ("note", "kettle", "It boils at noon"), ("section", "team", "Zoë reviews"),
    ):  # fmt: skip
        saved = KnowledgeSaved(
            agent_id="ada", kind=kind, key=key, content=content, turn_id=None  # type: ignore[arg-type]
        )  # fmt: skip
        await happened(log, saved)
    whole = await api.get("/agents/ada/knowledge")
    assert {one["key"] for one in whole["items"]} == {"kettle", "team"}
    found = await api.get("/agents/ada/knowledge", q="noon")
    assert [one["content"] for one in found["items"]] == ["It boils at noon"]
    assert [
        one["key"] for one in (await api.get("/agents/ada/knowledge?kind=section"))["items"]
    ] == ["team"]
    await happened(log, KnowledgeRemoved(agent_id="ada", kind="note", key="kettle", turn_id=None))
    assert (await api.get("/agents/ada/knowledge", q="noon"))["items"] == []
    then = await api.get("/agents/ada/knowledge", q="noon", at=whole["position"])
    assert [one["key"] for one in then["items"]] == ["kettle"]
    await api.get("/agents/ada/knowledge?kind=secret", 422)
    await api.get("/agents/nobody/knowledge", 404)
