"""Rows over HTTP: accepting and looking, with sixteen clients, beside a bare FastAPI service."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import orjson
import psycopg

from undivided.cli.bench import samples
from undivided.cli.bench.children import child, serving, workers
from undivided.cli.bench.load import get, post, requests_per_second
from undivided.cli.bench.measuring import Bench, in_turns
from undivided.cli.bench.references.writer import Writer
from undivided.cli.bench.rows import Row
from undivided.cli.bench.turning import ended, outlet
from undivided.cli.stack.folder import free_port
from undivided.domain.stimuli import HUMAN_CHAT

CLIENTS = 16
HANDLED, QUEUED = 8, 3
"""Items of the agent that is looked at."""
BODY = orjson.dumps(
    {
        "sourceType": HUMAN_CHAT,
        "payload": {"content": samples.SAID},
        "metadata": {"senderId": "u-17", "senderName": "Ines", "senderRole": "user"},
    }
)


async def http(bench: Bench) -> list[Row]:
    """Accept, mind and mailbox."""
    bench.tell("over HTTP")
    agent_id = await _lived_in(bench)
    agents = [await samples.new_agent(bench.log) for _ in range(CLIENTS)]
    async with both(bench) as (ours, theirs):
        return [
            await _accept(bench, ours, theirs, agents),
            *await _look(bench, ours, theirs, f"/api/agents/{agent_id}"),
        ]


@asynccontextmanager
async def both(bench: Bench) -> AsyncIterator[tuple[int, int]]:
    """The ports of our API and of the reference, each in a process of its own."""
    ours = free_port()
    theirs = free_port(ours)
    async with (
        child(bench, "api", "undivided", "api", "--port", str(ours)) as api,
        child(bench, "web", "undivided.cli.bench.references.web", str(theirs)) as web,
        serving(f"http://127.0.0.1:{ours}/readyz", api),
        serving(f"http://127.0.0.1:{theirs}/openapi.json", web),
    ):
        yield ours, theirs


async def _accept(bench: Bench, ours: int, theirs: int, agents: list[str]) -> Row:
    seconds = bench.of(2, 1)
    to_ours = [post(f"/api/agents/{agent_id}/mailbox", BODY) for agent_id in agents]
    to_theirs = [post("/rows", BODY)] * CLIENTS
    mine, other = await in_turns(
        bench.rounds,
        lambda: requests_per_second(ours, to_ours, seconds),
        lambda: requests_per_second(theirs, to_theirs, seconds),
    )
    reference = "bare FastAPI POST that inserts one row through an async pool"
    return Row(group="http", work="accept over HTTP, 16 clients", unit="/s", ours=mine,
               theirs=other, reference=reference, at_least=0.4)  # fmt: skip


async def _look(bench: Bench, ours: int, theirs: int, agent: str) -> list[Row]:
    seconds = bench.of(2, 1)
    stream = await asyncio.to_thread(_some_row, bench.servers.settings.database_url)
    asked = ([get(f"{agent}/mind")] * CLIENTS, [get(f"{agent}/mailbox")] * CLIENTS)
    mind, mailbox, other = await in_turns(
        bench.rounds,
        lambda: requests_per_second(ours, asked[0], seconds),
        lambda: requests_per_second(ours, asked[1], seconds),
        lambda: requests_per_second(theirs, [get(f"/rows/{stream}")] * CLIENTS, seconds),
    )
    reference = "bare FastAPI GET of one indexed row"
    return [
        Row(group="http", work="GET mind over HTTP, 16 clients", unit="/s", ours=mind, theirs=other,
            reference=reference, at_least=0.4),
        Row(group="http", work=f"GET mailbox ({HANDLED + QUEUED} items), 16 clients", unit="/s",
            ours=mailbox, theirs=other, reference=reference, at_least=0.25),
    ]  # fmt: skip


async def _lived_in(bench: Bench) -> str:
    """An agent with some items behind it and some waiting."""
    agent_id = await samples.new_agent(bench.log, "bench")
    async with workers(bench, 1), outlet(bench) as way_out:
        for _ in range(HANDLED):
            await samples.accept_one(samples.deaf(bench.log), agent_id)
        way_out.doorbell.ring([agent_id])
        await ended(bench, [agent_id], HANDLED)
    for _ in range(QUEUED):
        await samples.accept_one(samples.deaf(bench.log), agent_id)
    return agent_id


def _some_row(url: str) -> str:
    """The stream of one row that is there."""
    writer = Writer(url, samples.stored(samples.accepted("agt_reference")))
    writer.write()
    writer.close()
    with psycopg.connect(url, autocommit=True) as connection:
        found = connection.execute(
            "SELECT stream FROM events WHERE stream LIKE 'reference:%' AND version = 1 LIMIT 1"
        ).fetchone()
    return str(found[0]) if found else ""
