"""Redis is away, or has forgotten everything: work goes on, only less promptly."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
import redis.asyncio

from tests.process.crew import BY, Crew, call, crew_on
from undivided.domain.events.items import ItemRequeued
from undivided.domain.events.sessions import TurnEnded, TurnSuspended
from undivided.store.commands.sessions import stop_turn
from undivided.store.settings import Settings

pytestmark = pytest.mark.process


@pytest.fixture
async def deaf(settings: Settings, tmp_path: Path) -> AsyncIterator[Crew]:
    """A crew whose Redis is not there, and never will be."""
    away = msgspec.structs.replace(settings, redis_url="redis://127.0.0.1:1/0")
    async with crew_on(away, tmp_path) as one:
        yield one


async def test_it_is_away(deaf: Crew) -> None:
    """C84: accepting, turns, waits and stops need Postgres only."""
    rest = call("sleep", seconds=0.3)
    await deaf.agent("ada", {"step": 0, "calls": [rest]}, {"step": 1, "reply": "rested"})
    await deaf.agent("bob", {"delay": 3600})
    deaf.hire()
    (rested,) = await deaf.send("ada", "rest")
    (stopped,) = await deaf.send("bob", "hello")
    await deaf.attention("bob", "focused")
    await stop_turn(deaf.outlet, "ses_bob", BY)
    await deaf.over(rested, stopped)
    assert await deaf.status(rested) == "completed"
    assert await deaf.status(stopped) == "cancelled"


async def test_it_forgets_everything(crew: Crew) -> None:
    """C83: timers and retries are in Postgres; all of them are due in time."""
    rest, count = call("sleep", seconds=1.5), 10
    for number in range(count):
        await crew.agent(f"s{number}", {"step": 0, "calls": [rest]}, {"step": 1, "reply": "so"})
        await crew.agent(
            f"f{number}", {"error": "server_error"}, retryBackoffS=[1], maxDeliveryAttempts=2
        )
    crew.hire()
    sleepers = [(await crew.send(f"s{number}", "rest"))[0] for number in range(count)]
    failing = [(await crew.send(f"f{number}", "try"))[0] for number in range(count)]
    await crew.recorded(TurnSuspended, count)
    await crew.recorded(ItemRequeued, count)
    async with redis.asyncio.Redis.from_url(crew.settings.redis_url) as client:
        await client.flushall()
    await crew.over(*sleepers, *failing)
    assert {await crew.status(item) for item in sleepers} == {"completed"}
    assert {await crew.status(item) for item in failing} == {"dead_letter"}
    assert len(await crew.events(TurnEnded)) == count * 3
