"""Whatever is wrong is refused clearly, and nothing is written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.api.calls import Api
from tests.support.servers import Database

NUL, LONE = "a\x00b", "a\ud800b"
CHAT: dict[str, Any] = {"sourceType": "human_chat", "payload": {"content": "x"}}


def chat(**changes: Any) -> dict[str, Any]:
    return {**CHAT, **changes}


def payload(**changes: Any) -> dict[str, Any]:
    return {**CHAT, "payload": {"content": "x", **changes}}


MAILBOX: list[tuple[str, Any, int, str]] = [
    ("unknown type", chat(sourceType="telepathy"), 422, "invalid"),
    ("no type", {"payload": {"content": "x"}}, 422, "invalid"),
    ("unknown field", chat(colour="red"), 422, "invalid"),
    ("unknown field inside", payload(colour="red"), 422, "invalid"),
    ("wrong type of field", payload(content=7), 422, "invalid"),
    ("no content", chat(payload={}), 422, "invalid"),
    ("over-long content", payload(content="x" * 1_000_001), 413, "too_large"),
    ("over-long summary", payload(summary="x" * 2_001), 422, "invalid"),
    ("priority out of range", chat(priority=5), 422, "invalid"),
    ("priority of another type", chat(priority="high"), 422, "invalid"),
    ("unknown delivery", chat(delivery="drone"), 422, "invalid"),
    ("NUL in a sender's name", chat(metadata={"senderName": NUL}), 422, "invalid"),
    ("surrogate in a sender's name", chat(metadata={"senderName": LONE}), 422, "invalid"),
    ("NUL in a sender's id", chat(metadata={"senderId": NUL}), 422, "invalid"),
    ("unknown role", chat(metadata={"senderRole": "boss"}), 422, "invalid"),
    ("NUL in a session's id", chat(sessionId=NUL), 422, "invalid"),
    ("surrogate in a task's id", payload(taskId=LONE), 422, "invalid"),
    ("a session's id with a space", chat(sessionId="my session"), 422, "invalid"),
    ("not JSON", b"{sourceType", 422, "invalid"),
    ("not UTF-8", b'{"sourceType": "\xff"}', 422, "invalid"),
    ("no body", b"", 422, "invalid"),
    ("a list", [], 422, "invalid"),
    ("not a number", b'{"sourceType":"human_chat","payload":{"content":"x","extra":{"a":NaN}}}',
     422, "invalid"),
    ("nested deep", b'{"sourceType":"human_chat","payload":{"content":"\\ud800","extra":'
     + b'{"a":' * 150 + b"1" + b"}" * 150 + b"}}", 422, "invalid"),
    ("over-long body", b" " * (17 * 1024 * 1024), 413, "too_large"),
]  # fmt: skip

AGENTS: list[tuple[str, Any, int]] = [
    ("no name", {}, 422),
    ("an empty name", {"name": ""}, 422),
    ("a blank name", {"name": "  "}, 422),
    ("NUL in the name", {"name": NUL}, 422),
    ("surrogate in the name", {"name": LONE}, 422),
    ("an over-long name", {"name": "x" * 201}, 422),
    ("NUL in the id", {"name": "x", "id": NUL}, 422),
    ("a slash in the id", {"name": "x", "id": "a/b"}, 422),
    ("an over-long id", {"name": "x", "id": "x" * 129}, 422),
    ("an unknown field", {"name": "x", "color": "red"}, 422),
    ("an unknown model", {"name": "x", "model": "gpt"}, 422),
    ("a script that is not there", {"name": "x", "model": "script:/no/where.yaml"}, 422),
    ("a recording that is not there", {"name": "x", "model": "rehearsal:/no/where.json"}, 422),
    ("an unknown recording", {"name": "x", "model": "rehearsal:recording:" + "a" * 64}, 422),
    ("a script that has no end", {"name": "x", "model": "script:/dev/zero"}, 422),
    ("an unknown policy", {"name": "x", "policy": {"speed": 1}}, 422),
    ("a policy out of range", {"name": "x", "policy": {"mailboxCapacity": 0}}, 422),
    ("a policy without end", b'{"name": "x", "policy": {"processingTimeoutS": 1e999}}', 422),
    ("a policy that is no number", b'{"name": "x", "policy": {"toolTimeoutS": NaN}}', 422),
    ("a wait that is no number", b'{"name": "x", "policy": {"retryBackoffS": [1, NaN]}}', 422),
    ("a wait that no time can be added to", {"name": "x", "policy": {"retryBackoffS": [1e12]}},
     422),
    ("a policy of another type", {"name": "x", "policy": {"intake": "all"}}, 422),
    ("over-long instructions", {"name": "x", "instructions": "x" * 100_001}, 422),
    ("a tool that is no name", {"name": "x", "tools": [NUL]}, 422),
    ("more tools than there can be", {"name": "x", "tools": ["t"] * 1_001}, 422),
    ("a heartbeat that is none", {"name": "x", "heartbeatIntervalS": 0}, 422),
    ("a heartbeat that never comes", {"name": "x", "heartbeatIntervalS": 1e300}, 422),
]  # fmt: skip


@pytest.fixture
def count(database: Database) -> Any:
    """How many events there are."""

    def counted() -> int:
        with psycopg.connect(database.owner_url) as connection:
            row = connection.execute("SELECT count(*) FROM events").fetchone()
            return row[0] if row else 0

    return counted


def check_problem(answer: Any, status: int, code: str | None = None) -> None:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    told = answer.json()
    assert told["status"] == status
    assert {"type", "title", "detail", "code"} <= told.keys()
    assert code is None or told["code"] == code
    assert "Traceback" not in answer.text
    if status == 422:
        assert told["errors"][0].keys() == {"field", "detail"}


async def test_bad_stimuli_are_refused(api: Api, count: Any) -> None:
    await api.agent("ada")
    before = count()
    for what, body, status, code in MAILBOX:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        answer = await api.client.post("/api/agents/ada/mailbox", content=content)
        assert answer.status_code == status, f"{what}: {answer.text}"
        check_problem(answer, status, code)
    assert count() == before


async def test_a_batch_says_which_of_it_is_bad(api: Api, count: Any) -> None:
    await api.agent("ada")
    before = count()
    for bad, field in (
        (chat(sourceType="telepathy"), "items.1.sourceType"),
        (chat(colour="red"), "items.1.colour"),
    ):
        body = {"items": [CHAT, bad]}
        answer = await api.client.post("/api/agents/ada/mailbox:batch", json=body)
        check_problem(answer, 422, "invalid")
        assert answer.json()["errors"][0]["field"] == field
        assert answer.json()["detail"].startswith("items.1")
    assert count() == before


async def test_bad_agents_are_refused(api: Api, count: Any) -> None:
    for what, body, status in AGENTS:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        answer = await api.client.post("/api/agents", content=content)
        assert answer.status_code == status, f"{what}: {answer.text}"
        check_problem(answer, status)
    assert count() == 0


async def test_a_mistake_in_a_script_is_told_with_its_line(
    api: Api, count: Any, tmp_path: Path
) -> None:
    """Now, and not at the first turn."""
    await api.agent("ada")
    before, script = count(), tmp_path / "plan.yaml"
    script.write_text("rules:\n- repl: x\n", encoding="utf-8")
    for answer in (
        await api.client.post("/api/agents", json={"name": "x", "model": f"script:{script}"}),
        await api.client.patch("/api/agents/ada", json={"model": f"script:{script}"}),
    ):
        check_problem(answer, 422)
        assert "plan.yaml, line 2: rules[0].repl is not known" in answer.json()["detail"]
        assert answer.json()["errors"][0]["field"] == "model"
    assert count() == before


async def test_a_recording_of_another_shape_is_refused(api: Api) -> None:
    """Before anybody rehearses with it."""
    answer = await api.client.post("/api/recordings", content=b'{"agents": 3}')
    check_problem(answer, 422, "recording_mistake")


async def test_a_mistake_is_told_in_our_words(api: Api) -> None:
    """Nothing of the library that found it."""
    answer = await api.client.post("/api/agents", json={"name": "x", "id": "a/b"})
    said = answer.json()["detail"]
    assert said == "id: must be 1 to 128 letters, digits, '.', '_' or '-'"


async def test_unknown_types_are_told_with_those_there_are(api: Api) -> None:
    await api.agent("ada")
    answer = await api.client.post("/api/agents/ada/mailbox", json=chat(sourceType="telepathy"))
    assert "human_chat" in answer.json()["detail"]
    assert answer.json()["errors"][0]["field"] == "sourceType"


async def test_what_does_not_exist_is_not_found(api: Api, count: Any) -> None:
    for path in (
        "/agents/nobody", "/agents/nobody/mind", "/agents/nobody/mailbox",
        "/agents/nobody/decisions", "/agents/nobody/activities",
        "/agents/nobody/activity-logs?activityId=x", "/items/nothing", "/sessions/nowhere",
        "/sessions/nowhere/messages", "/events/nothing",
        "/events/01890000-0000-7000-8000-000000000000",
        "/events/01890000-0000-7000-8000-000000000000/causes", "/nowhere",
        "/agents/a%00b", "/agents/%ED%A0%80/mind", "/items/a%00b", "/sessions/a%20b",
    ):  # fmt: skip
        check_problem(await api.client.get(f"/api{path}"), 404)
    for path, body in (
        ("/agents/nobody/mailbox", CHAT),
        ("/agents/nobody/mailbox:batch", {"items": [CHAT]}),
        ("/agents/nobody/messages", {"text": "x"}),
        ("/agents/a%00b/mailbox", CHAT),
        ("/agents/nobody/start", None),
        ("/sessions/nowhere/stop", None),
        ("/sessions/nowhere/archive", None),
    ):
        content = b"" if body is None else json.dumps(body).encode()
        check_problem(await api.client.post(f"/api{path}", content=content), 404)
    check_problem(await api.client.patch("/api/agents/nobody", json={"name": "x"}), 404)
    check_problem(await api.client.delete("/api/agents/nobody"), 404)
    check_problem(await api.client.delete("/api/healthz"), 405)
    assert count() == 0


async def test_a_batch_is_all_or_nothing(api: Api, count: Any) -> None:
    await api.agent("ada", policy={"mailboxCapacity": 5})
    before = count()
    for items, status in (
        ([], 422),
        ([CHAT] * 1_001, 422),
        ([CHAT, chat(sourceType="telepathy")], 422),
        ([CHAT, payload(content="x" * 1_000_001)], 413),
        ([CHAT] * 6, 429),
    ):
        answer = await api.client.post("/api/agents/ada/mailbox:batch", json={"items": items})
        check_problem(answer, status)
    assert count() == before
    await api.post("/agents/ada/mailbox:batch", {"items": [CHAT] * 5})


async def test_a_full_mailbox_says_when_to_come_again(api: Api, count: Any) -> None:
    await api.agent("ada", policy={"mailboxCapacity": 2})
    await api.chat("ada", "one")
    await api.chat("ada", "two")
    before = count()
    answer = await api.client.post("/api/agents/ada/mailbox", json=CHAT)
    check_problem(answer, 429, "mailbox_full")
    assert int(answer.headers["retry-after"]) > 0
    answer = await api.client.post("/api/agents/ada/messages", json={"text": "x"})
    check_problem(answer, 429, "mailbox_full")
    assert count() == before


async def test_bad_parameters_are_refused(api: Api) -> None:
    await api.agent("ada")
    for query in (
        "limit=0", "limit=501", "limit=many", "limit=-1", "limit=", "offset=-1", "cursor=nonsense",
        "cursor=%00", "type=telepathy", "category=none", "status=lost", "type=a%00",
        "at=nonsense", "at=yesterday", "at=2020-01-01", "at=2020-13-01T00:00:00Z", "at=%00",
        "at=99999999999999999999-1", "minPosition=nonsense",
    ):  # fmt: skip
        answer = await api.client.get(f"/api/agents/ada/mailbox?{query}")
        assert answer.status_code == 422, f"{query}: {answer.text}"
        check_problem(answer, 422)
    check_problem(await api.client.get("/api/agents/ada/activity-logs"), 422)
    check_problem(await api.client.get("/api/events?after=nonsense"), 422)
    check_problem(await api.client.get("/api/events?cursor=nonsense"), 422)
    check_problem(await api.client.get("/api/events/stream?after=x"), 422)
    check_problem(await api.client.get("/api/events/stream", headers={"last-event-id": "x"}), 422)
    check_problem(await api.client.get("/api/sessions/x/messages?visibility=some"), 422)


async def test_coordinates_from_the_future_are_refused(api: Api) -> None:
    made = await api.agent("ada")
    txid = int(made["position"].split("-")[0])
    for at in (f"{txid + 10_000_000}-1", "2999-01-01T00:00:00Z"):
        answer = await api.client.get("/api/agents/ada", params={"at": at})
        check_problem(answer, 422, "position_from_the_future")
    answer = await api.client.get("/api/events/stream", params={"after": f"{txid + 10_000_000}-1"})
    check_problem(answer, 422, "position_from_the_future")
    answer = await api.client.get(
        "/api/agents/ada", params={"minPosition": f"{txid + 10_000_000}-1"}
    )
    check_problem(answer, 412, "position_not_reached")


async def test_rules_refuse_by_name(api: Api, count: Any) -> None:
    await api.agent("ada")
    before = count()
    answer = await api.client.post("/api/agents", json={"id": "ada", "name": "again"})
    check_problem(answer, 409, "agent_exists")
    answer = await api.client.post("/api/agents/ada/start", json={"force": True})
    check_problem(answer, 422)
    for body in ({"colour": 1}, {"name": NUL}, {"model": "gpt"}, {"policy": {"speed": 1}}):
        answer = await api.client.patch("/api/agents/ada", content=json.dumps(body).encode())
        check_problem(answer, 422)
    assert count() == before
    check_problem(await api.client.post("/api/recordings", content=b"not json"), 422)
