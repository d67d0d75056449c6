"""Behind a pooler in transaction mode, session locks would strand: nothing starts there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.process.running import command
from tests.support.pooler import transaction_pooler
from tests.support.servers import environment_for
from undivided.store.locks import PoolerInTransactionMode, refuse_transaction_pooler
from undivided.store.settings import Settings

pytestmark = pytest.mark.process


@pytest.fixture
async def pooled(settings: Settings) -> AsyncIterator[str]:
    async with transaction_pooler(settings.database_url) as url:
        yield url


async def ends(settings: Settings, *arguments: str, **environ: str) -> tuple[int, str]:
    """Run a command to its end; answers its exit code and what it said on stderr."""
    process = await asyncio.create_subprocess_exec(
        *command(*arguments),
        env={**environment_for(settings), **environ},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    _, said = await asyncio.wait_for(process.communicate(), 30)
    return process.returncode or 0, said.decode()


async def test_it_is_told_from_a_direct_way(settings: Settings, pooled: str) -> None:
    """Only the address through the pooler is refused."""
    await refuse_transaction_pooler(settings.database_url)
    with pytest.raises(PoolerInTransactionMode):
        await refuse_transaction_pooler(pooled)


@pytest.mark.parametrize("part", ["worker", "doctor"])
async def test_one_sentence_says_what_to_do(settings: Settings, pooled: str, part: str) -> None:
    """It names the variable that helps."""
    code, said = await ends(settings, part, DATABASE_URL=pooled, DATABASE_DIRECT_URL="")
    assert code == 3
    assert said.count("\n") == 1
    assert "set DATABASE_DIRECT_URL to the database itself" in said


async def test_a_direct_address_beside_it_helps(settings: Settings, pooled: str) -> None:
    """Locks go past the pooler then."""
    assert await ends(settings, "doctor", DATABASE_URL=pooled) == (0, "")
