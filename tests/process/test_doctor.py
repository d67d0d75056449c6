"""`undivided doctor`: what is wrong, in one sentence each, and an exit code to act on."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import psycopg
import pytest
from psycopg import sql

from tests.process.running import command
from tests.support.servers import Database, environment_for
from undivided.store.settings import Settings


async def doctor(settings: Settings, **environ: str) -> tuple[int, dict[str, str]]:
    """Run it; answers the exit code and the details of what is not as it must be."""
    process = await asyncio.create_subprocess_exec(
        *command("doctor", "--json"),
        env={**environment_for(settings), **environ},
        stdout=asyncio.subprocess.PIPE,
    )
    said, _ = await asyncio.wait_for(process.communicate(), 60)
    answer: dict[str, Any] = json.loads(said)
    wrong = {check["name"]: check["detail"] for check in answer["checks"] if not check["ok"]}
    assert answer["ok"] is (not wrong)
    return process.returncode or 0, wrong


@pytest.mark.process
class TestDoctor:
    """Each thing that can be wrong is named."""

    async def test_all_is_well(self, settings: Settings) -> None:
        """Nothing is named, and the exit code is 0."""
        assert await doctor(settings) == (0, {})

    async def test_a_database_that_isolates_too_much(
        self, settings: Settings, database: Database
    ) -> None:
        """Who waits for a lock would not see what its last holder wrote."""
        change = sql.SQL("ALTER DATABASE {} SET default_transaction_isolation = 'serializable'")
        with psycopg.connect(database.owner_url, autocommit=True) as owner:
            owner.execute(change.format(sql.Identifier(owner.info.dbname)))
        code, wrong = await doctor(settings)
        assert code == 1
        assert wrong["isolation"].startswith("is serializable; set")

    async def test_nothing_answers(self, settings: Settings) -> None:
        """Both servers are told, each with the variable to check."""
        nowhere = {
            "DATABASE_URL": "postgresql://app:secret@127.0.0.1:1/undivided",
            "REDIS_URL": "redis://127.0.0.1:1/0",
        }
        code, wrong = await doctor(settings, **nowhere)
        assert code == 3
        assert wrong["database"].endswith("check DATABASE_URL")
        assert wrong["redis"].endswith("check REDIS_URL")
        assert "secret" not in wrong["database"]

    async def test_the_service_as_owner(self, settings: Settings) -> None:
        """A role that may change the log is not one for the service."""
        code, wrong = await doctor(settings, DATABASE_URL=settings.database_owner_url)
        assert code == 1
        assert wrong["role"].startswith("postgres owns the log")

    async def test_an_old_schema(self, settings: Settings, database: Database) -> None:
        """The command that helps is named."""
        async with await psycopg.AsyncConnection.connect(database.owner_url) as owner:
            await owner.execute("DELETE FROM alembic_version")
        code, wrong = await doctor(settings)
        assert code == 1
        assert wrong["schema"].endswith("run `undivided migrate`")
