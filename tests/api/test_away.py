"""What happens without Postgres, without Redis, without a schema."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import msgspec
import psycopg
import pytest
from psycopg import sql

from tests.api.calls import Api
from tests.api.frames import frames_of, next_frame
from tests.api.turns import whole_turn
from tests.support.servers import Database, Servers
from undivided.api.app import create_app
from undivided.api.parts import Parts
from undivided.store.settings import Settings

NOWHERE = "postgresql://undivided_app@127.0.0.1:1/nothing"
CHAT = {"sourceType": "human_chat", "payload": {"content": "x"}}
END = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"


def allow(owner: psycopg.Connection[Any], database: Database, connections: bool) -> None:
    """Let the database take connections, or none."""
    owner.execute(
        sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS {}").format(
            sql.Identifier(database.name), sql.Literal(connections)
        )
    )


@asynccontextmanager
async def serving(settings: Settings) -> AsyncIterator[tuple[Api, Parts]]:
    app = create_app(settings)
    async with app.router.lifespan_context(app):
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://api") as client:
            yield Api(client), app.state.parts


async def test_without_postgres_it_says_so(settings: Settings) -> None:
    """503 with Retry-After, alive but not ready, and no word about where Postgres is."""
    away = msgspec.structs.replace(settings, database_url=NOWHERE)
    async with serving(away) as (api, _):
        assert (await api.client.get("/healthz")).status_code == 200
        ready = await api.client.get("/readyz")
        assert ready.status_code == 503
        assert ready.json()["database"] == "unreachable"
        for answer in await asyncio.gather(
            api.client.post("/api/agents/ada/mailbox", json=CHAT),
            api.client.get("/api/agents/ada/mind"),
            api.client.get("/api/events/stream?after=1-1"),
        ):
            assert answer.status_code == 503
            assert answer.headers["retry-after"] == "1"
            assert answer.json()["code"] == "unavailable"
            assert "127.0.0.1" not in answer.text


async def test_it_recovers_by_itself_when_postgres_is_back(
    settings: Settings, servers: Servers, database: Database
) -> None:
    async with serving(settings) as (api, _):
        await api.agent("ada")
        with psycopg.connect(servers.owner("postgres"), autocommit=True) as owner:
            allow(owner, database, connections=False)
            owner.execute(END.encode(), (database.name,))
            answer = await api.client.post("/api/agents/ada/mailbox", json=CHAT)
            assert answer.status_code == 503
            allow(owner, database, connections=True)
        async with asyncio.timeout(20):
            while True:
                answer = await api.client.post("/api/agents/ada/mailbox", json=CHAT)
                if answer.status_code == 202:
                    break
                assert answer.status_code == 503


async def test_a_stream_outlives_postgres(api: Api, servers: Servers, database: Database) -> None:
    await api.agent("ada")
    async with api.stream("GET", "/events/stream?after=0-0") as answer:
        frames = frames_of(answer)
        await next_frame(frames)
        with psycopg.connect(servers.owner("postgres"), autocommit=True) as owner:
            owner.execute(END.encode(), (database.name,))
        async with asyncio.timeout(20):
            while (await api.client.post("/api/agents/ada/mailbox", json=CHAT)).status_code != 202:
                pass
        assert (await next_frame(frames, 20)).event == "item.accepted"


@pytest.fixture
def without_redis(settings: Settings) -> Settings:
    """Nothing listens where Redis should be."""
    return msgspec.structs.replace(settings, redis_url="redis://127.0.0.1:1/0")


async def test_without_redis_everything_is_accepted(without_redis: Settings) -> None:
    async with serving(without_redis) as (api, _):
        await api.agent("ada")
        await api.chat("ada", "x")
        async with asyncio.timeout(5):
            while (ready := (await api.client.get("/readyz"))).json()["status"] != "degraded":
                await asyncio.sleep(0.01)
        assert ready.status_code == 200


async def test_without_redis_a_reply_is_still_waited_for(without_redis: Settings) -> None:
    """Nobody is told, so it is looked for once a second."""
    async with serving(without_redis) as (api, parts):
        await api.agent("ada")
        asked = asyncio.create_task(api.post("/agents/ada/messages?wait=20", {"text": "hi"}, 200))
        await api.until("/agents/ada/mailbox", lambda box: box["queueDepth"] == 1)
        await whole_turn(parts.outlet.log, "ada", "hello")
        assert (await asked)["reply"] == "hello"


async def test_without_redis_a_stream_still_ends(without_redis: Settings) -> None:
    async with serving(without_redis) as (api, parts):
        await api.agent("ada")
        streaming = asyncio.create_task(
            api.client.post(
                "/api/agents/ada/messages",
                json={"text": "hi"},
                headers={"accept": "text/event-stream"},
            )
        )
        await api.until("/agents/ada/mailbox", lambda box: box["queueDepth"] == 1)
        await whole_turn(parts.outlet.log, "ada", "hello")
        answer = await streaming
        assert "event: done" in answer.text
        assert '"reply":"hello"' in answer.text


async def test_without_a_schema_it_says_what_to_do(settings: Settings, servers: Servers) -> None:
    bare = msgspec.structs.replace(settings, database_url=servers.owner("postgres"))
    async with serving(bare) as (api, _):
        ready = await api.client.get("/readyz")
        assert (ready.status_code, ready.json()["schema"]) == (503, "missing")
        told = await api.get("/agents/ada", 503)
        assert "undivided migrate" in told["detail"]


async def test_an_older_schema_is_not_ready(settings: Settings, database: Database) -> None:
    with psycopg.connect(database.owner_url, autocommit=True) as owner:
        owner.execute(b"UPDATE alembic_version SET version_num = '0000'")
    async with serving(settings) as (api, _):
        ready = await api.client.get("/readyz")
        assert (ready.status_code, ready.json()["schema"]) == (503, "outdated")
