"""One key, one effect, one answer: whoever sends it, however often, whenever they die."""

from __future__ import annotations

import asyncio
import hashlib
from typing import Any

import psycopg
import pytest

from tests.api.calls import Api
from tests.support.servers import Database
from undivided.api.parts import Parts
from undivided.domain.errors import Unavailable
from undivided.domain.events.items import Payload
from undivided.domain.mailbox import Accept
from undivided.domain.recorded import Meta
from undivided.store.commands.accepting import accept_stimuli
from undivided.store.idempotency import Mine, claim, mark_of, print_of

CHAT = {"sourceType": "human_chat", "payload": {"content": "once\ud800"}}


def sql(database: Database, statement: str, *values: Any) -> Any:
    with psycopg.connect(database.owner_url, autocommit=True) as connection:
        cursor = connection.execute(statement.encode(), values)
        row = cursor.fetchone() if cursor.description else None
        return row[0] if row else cursor.rowcount


async def test_fifty_at_once_have_one_effect(api: Api, database: Database) -> None:
    """C89: one event, fifty equal bodies."""
    await api.agent("ada")
    answers = await asyncio.gather(
        *(api.post("/agents/ada/mailbox", CHAT, key="k1") for _ in range(50))
    )
    assert len({str(answer) for answer in answers}) == 1
    assert sql(database, "SELECT count(*) FROM events WHERE type = 'item.accepted'") == 1


async def test_fifty_agents_at_once_are_one(api: Api, database: Database) -> None:
    answers = await asyncio.gather(
        *(api.post("/agents", {"name": "Ada"}, 201, key="k2") for _ in range(50))
    )
    assert len({answer["id"] for answer in answers}) == 1
    assert sql(database, "SELECT count(*) FROM events") == 1


async def test_another_body_under_the_same_key_is_refused(api: Api, database: Database) -> None:
    await api.agent("ada")
    await api.agent("bob")
    await api.post("/agents/ada/mailbox", CHAT, key="k")
    before = sql(database, "SELECT count(*) FROM events")
    for path, body in (
        ("/agents/ada/mailbox", {**CHAT, "priority": 1}),
        ("/agents/bob/mailbox", CHAT),
        ("/agents/ada/messages", {"text": "x"}),
    ):
        refused = await api.post(path, body, 422, key="k")
        assert refused["code"] == "idempotency_key_reused"
    assert sql(database, "SELECT count(*) FROM events") == before


async def test_the_way_a_body_is_written_down_is_no_difference(api: Api) -> None:
    await api.agent("ada")
    first = await api.post("/agents/ada/messages", b'{"text": "hi", "senderId": "t"}', key="k")
    again = await api.post("/agents/ada/messages", b'{"senderId":"t","text":"hi"}', key="k")
    assert again == first


async def test_a_refusal_is_no_answer_to_keep(api: Api) -> None:
    await api.post("/agents/ada/mailbox", CHAT, 404, key="k")
    await api.agent("ada")
    await api.post("/agents/ada/mailbox", CHAT, 202, key="k")


async def test_every_command_takes_a_key(api: Api, database: Database) -> None:
    await api.agent("ada")
    for path, body, status in (
        ("/agents/ada/pause", None, 200),
        ("/agents/ada/start", None, 200),
        ("/agents/ada/stop", None, 200),
        ("/agents/ada/resume", None, 200),
        ("/agents/ada/cancel-processing", None, 200),
        ("/agents/ada/mailbox:batch", {"items": [CHAT, CHAT]}, 202),
        ("/recordings", {"agents": {}}, 201),
    ):
        first = await api.post(path, body, status, key=path)
        before = sql(database, "SELECT count(*) FROM events")
        assert await api.post(path, body, status, key=path) == first
        assert sql(database, "SELECT count(*) FROM events") == before


async def test_a_key_must_be_one(api: Api) -> None:
    await api.agent("ada")
    await api.post("/agents/ada/mailbox", CHAT, 422, key="k" * 256)


async def test_a_claim_of_the_dead_is_taken_over(
    api: Api, parts: Parts, database: Database
) -> None:
    """Died before it wrote anything: the next one does it. Died after: it is not done twice."""
    await api.agent("ada")
    canonical = b'{"payload": {"content": "once\\ud800"}, "sourceType": "human_chat"}'
    request = print_of("POST", "/api/agents/ada/mailbox", canonical)
    for key in ("before", "after"):
        assert isinstance(await claim(parts.database, key, request), Mine)
    wrote = Accept(item_id="mbx_first", source_type="human_chat", payload=Payload("once\ud800"))
    meta = Meta(causation=mark_of("after"))
    done = await accept_stimuli(parts.outlet, "ada", [wrote], meta)
    sql(database, "UPDATE idempotency SET kept_at = now() - interval '1 hour'")
    for key, items in (("before", 2), ("after", 2)):
        answer = await api.post("/agents/ada/mailbox", CHAT, key=key)
        assert await api.post("/agents/ada/mailbox", CHAT, key=key) == answer
        counted = "SELECT count(*) FROM events WHERE type = 'item.accepted'"
        assert sql(database, counted) == items
    assert answer["itemId"] == "mbx_first"
    assert answer["position"] == str(done.coordinate)


async def test_an_agent_made_by_the_dead_is_not_refused(api: Api, database: Database) -> None:
    first = await api.post("/agents", {"id": "ada", "name": "Ada"}, 201, key="k")
    sql(
        database,
        "UPDATE idempotency SET status = NULL, answer = NULL, kept_at = now() - interval '1 hour'",
    )
    assert await api.post("/agents", {"id": "ada", "name": "Ada"}, 201, key="k") == first


async def test_a_slow_maker_cannot_come_in_late(api: Api, parts: Parts) -> None:
    """Who was overtaken finds out before it writes."""
    await api.agent("ada")
    mine = await claim(parts.database, "k", hashlib.sha256(b"x").hexdigest())
    assert isinstance(mine, Mine)
    late = Mine(mine.key, mine.mark, mine.again, mine.since - 60)
    with pytest.raises(Unavailable, match="too long"):
        late.check()
