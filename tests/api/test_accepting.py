"""Agents are made, stimuli accepted, items looked at."""

from __future__ import annotations

import hashlib

import pytest

from tests.api.calls import Api


async def test_an_agent_is_made_and_found_again(api: Api) -> None:
    made = await api.agent("ada", instructions="be kind", policy={"mailboxCapacity": 3})
    assert made["status"] == "started"
    assert made["policy"]["mailboxCapacity"] == 3
    assert made["policyVersion"] == 1
    found = await api.get("/agents/ada")
    assert found == made
    listed = await api.get("/agents")
    assert listed["items"] == [made]
    assert listed["nextCursor"] is None


async def test_an_id_is_made_up_where_none_is_given(api: Api) -> None:
    made = await api.post("/agents", {"name": "Somebody"}, 201)
    assert made["id"].startswith("agt_")


async def test_a_stimulus_waits_in_the_mailbox(api: Api) -> None:
    await api.agent("ada")
    accepted = await api.chat("ada", "hello", metadata={"senderName": "Tom", "senderRole": "user"})
    assert accepted["status"] == "queued"
    item = await api.get(f"/items/{accepted['itemId']}")
    assert item["payload"] == {"content": "hello"}
    assert item["metadata"] == {"senderName": "Tom", "senderRole": "user"}
    assert item["status"] == "queued"
    assert item["position"] == accepted["position"]
    assert item["mergedFrom"] == []
    assert (item["category"], item["priority"], item["attempts"]) == ("interaction", 0, 0)


@pytest.mark.parametrize(
    ("kind", "role"),
    [
        ("human_chat", "user"), ("user_message", "user"), ("a2a_message", "agent"),
        ("text", "agent"), ("system_event", "system"), ("task_comment", "system"),
    ],
)  # fmt: skip
async def test_who_sends_goes_without_saying(api: Api, kind: str, role: str) -> None:
    """A chat message is a person's, unless it says otherwise."""
    await api.agent("ada")
    body = {"sourceType": kind, "payload": {"content": "hello"}}
    accepted = await api.post("/agents/ada/mailbox", body)
    item = await api.get(f"/items/{accepted['itemId']}")
    assert item["metadata"] == {"senderRole": role}


async def test_a_batch_is_accepted_in_order(api: Api) -> None:
    await api.agent("ada")
    items = [{"sourceType": "system_event", "payload": {"content": str(n)}} for n in range(1000)]
    accepted = await api.post("/agents/ada/mailbox:batch", {"items": items})
    assert len(accepted["items"]) == 1000
    last = await api.get(f"/items/{accepted['items'][-1]['itemId']}")
    assert last["payload"]["content"] == "999"


async def test_awkward_content_survives(api: Api) -> None:
    await api.agent("ada")
    raw = (
        rb'{"sourceType":"human_chat","payload":{"content":"a\u0000b\ud800c \\u0000 \u001a0000",'
        rb'"summary":"\udfff","extra":{"k\u0000":["\ud83d"]}}}'
    )
    accepted = await api.post("/agents/ada/mailbox", raw)
    item = await api.get(f"/items/{accepted['itemId']}")
    assert item["payload"]["content"] == "a\x00b\ud800c \\u0000 \x1a0000"
    assert item["payload"]["summary"] == "\udfff"
    assert item["payload"]["extra"] == {"k\x00": ["\ud83d"]}


async def test_a_recording_is_kept_under_its_hash(api: Api) -> None:
    content = b'{"agents": {}}'
    kept = await api.post("/recordings", content, 201)
    assert kept["id"] == hashlib.sha256(content).hexdigest()
    assert await api.post("/recordings", content, 201) == kept


async def test_health_and_readiness(api: Api) -> None:
    assert (await api.client.get("/healthz")).json() == {"status": "ok"}
    ready = await api.client.get("/readyz")
    assert ready.status_code == 200, ready.text
    assert ready.json()["schema"] == "ok"
