"""The surface as a whole: its description, its front door, its numbers, its tables."""

from __future__ import annotations

import json

from fastapi import FastAPI

from tests.api import turns
from tests.api.calls import Api
from undivided.api import problems
from undivided.api.openapi import CALLS
from undivided.store.log import Log


async def test_every_route_is_described(api: Api) -> None:
    told = (await api.client.get("/openapi.json")).json()
    calls = {(method, path) for path, methods in told["paths"].items() for method in methods}
    assert calls == set(CALLS)
    assert told["openapi"] == "3.1.0"
    references = {
        part.split('"')[0] for part in json.dumps(told).split("#/components/schemas/")[1:]
    }
    assert references <= told["components"]["schemas"].keys()
    for path in told["paths"].values():
        for call in path.values():
            assert call["description"]
            assert "default" in call["responses"]


async def test_bodies_and_answers_are_in_camel_case(api: Api) -> None:
    schemas = (await api.client.get("/openapi.json")).json()["components"]["schemas"]
    for schema in schemas.values():
        assert not [name for name in schema.get("properties", {}) if "_" in name]


async def test_the_front_door_says_what_this_is(api: Api) -> None:
    page = await api.client.get("/")
    assert page.status_code == 200
    assert "<h1>Undivided</h1>" in page.text


async def test_numbers_for_prometheus(api: Api, log: Log) -> None:
    await api.agent("ada")
    await api.chat("ada", "one")
    await api.chat("ada", "two")
    await turns.begin(log, "ada")
    text = (await api.client.get("/metrics")).text
    numbers = dict(line.split() for line in text.splitlines() if not line.startswith("#"))
    assert numbers["undivided_items_waiting"] == "1"
    assert numbers["undivided_turns_focused"] == "1"
    assert int(numbers["undivided_log_position"]) >= 5


def test_the_table_of_problems_is_the_one_that_is_told() -> None:
    """The docstring lists each family with the status that it gets."""
    listed = problems.__doc__ or ""
    for family, status in problems.STATUS:
        line = next(line for line in listed.splitlines() if family.__name__ in line)
        assert str(status) in line


async def test_what_nobody_foresaw_tells_nothing(app: FastAPI, api: Api) -> None:
    """An error of ours is one sentence; its text stays here."""

    async def broken() -> None:
        raise RuntimeError("secret")

    app.add_api_route("/broken", broken)
    answer = await api.client.get("/broken")
    assert answer.status_code == 500
    assert answer.json()["code"] == "internal"
    assert "secret" not in answer.text


async def test_an_agents_life(api: Api, log: Log) -> None:
    await api.agent("ada", tools=["test_sleep"], teamId="t1", heartbeatIntervalS=600)
    changed = await api.client.patch(
        "/api/agents/ada",
        json={"name": "Ada L.", "tools": None, "policy": {"intake": "drain"}, "instructions": "x"},
    )
    assert changed.json()["name"] == "Ada L."
    assert changed.json()["tools"] is None
    assert changed.json()["policyVersion"] == 2
    assert changed.json()["heartbeatIntervalS"] == 600
    same = await api.client.patch("/api/agents/ada", json={"name": "Ada L."})
    assert same.json()["changedAt"] == changed.json()["changedAt"]
    for verb, status in (
        ("pause", "paused"), ("resume", "started"), ("stop", "stopped"), ("start", "started"),
    ):  # fmt: skip
        told = await api.post(f"/agents/ada/{verb}", status=200)
        assert told["status"] == status
        assert (await api.get("/agents/ada"))["position"] == told["position"]
    await api.chat("ada", "one")
    waiting = await api.chat("ada", "two")
    flight = await turns.begin(log, "ada")
    busy = await api.client.delete("/api/agents/ada")
    assert busy.json()["code"] == "agent_busy"
    await api.post("/agents/ada/pause", status=200)
    await turns.finish(log, flight, "yes")
    gone = await api.client.delete("/api/agents/ada")
    assert gone.json()["status"] == "deleted"
    await api.get("/agents/ada", 404)
    assert (await api.get("/agents"))["items"] == []
    assert (await api.get(f"/items/{waiting['itemId']}"))["status"] == "cancelled"
    assert len((await api.get("/agents/ada/decisions"))["items"]) == 3
