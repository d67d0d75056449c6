"""`undivided up`: one command, one folder, and nothing lost whatever is killed."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import httpx
import psycopg
import pytest

from tests.process.running import Running, agents, all_pids, command, new_agent
from tests.support.servers import Database, environment_for
from undivided.cli.stack.spawn import alive, until
from undivided.store.settings import Settings

pytestmark = pytest.mark.process


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Running]:
    running = Running(tmp_path)
    yield running
    running.close()


async def refused(*arguments: str, cwd: Path | None = None, **environ: str) -> tuple[int, str]:
    """Run a command that must refuse; answers exit code and what it said on stderr."""
    given = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    process = await asyncio.create_subprocess_exec(
        *command(*arguments),
        env={**given, **environ},
        cwd=cwd,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    _, said = await asyncio.wait_for(process.communicate(), 60)
    return process.returncode or 0, said.decode()


class TestAWholeLife:
    """From the first start to the last stop."""

    async def test_it_starts_serves_and_stops(self, up: Running) -> None:
        """Ready means that the API answers; run.json says where all of it is."""
        up.start()
        run = await up.ready()
        assert run["url"] == up.url
        assert set(run) == {"url", "databaseUrl", "redisUrl", "pids"}
        assert set(run["pids"]) == {"api", "workers", "clock", "postgres", "valkey"}
        assert (len(run["pids"]["api"]), len(run["pids"]["workers"])) == (1, 2)
        assert all(alive(pid) for pid in all_pids(run))
        async with await psycopg.AsyncConnection.connect(run["databaseUrl"]) as connection:
            row = await (await connection.execute("SELECT current_user")).fetchone()
        assert row == ("undivided_app",)
        assert await refused("doctor", "--data", str(up.data)) == (0, "")
        assert await up.stop(signal.SIGINT) == 0
        assert not any(alive(pid) for pid in all_pids(run))
        assert not (up.data / "run.json").exists()

    async def test_a_second_start_continues_after_everything_was_killed(self, up: Running) -> None:
        """No process was asked to stop; what had been accepted is still there."""
        up.start()
        run = await up.ready()
        await new_agent(up.url, "ada")
        await up.kill(*all_pids(run))
        up.start()
        await up.ready()
        assert await agents(up.url) == ["ada"]

    async def test_a_killed_supervisor_takes_its_children_along(self, up: Running) -> None:
        """Nothing is left behind that a second start would meet."""
        up.start()
        run = await up.ready()
        await up.kill()
        assert await until(lambda: not any(alive(pid) for pid in all_pids(run)), 25)

    async def test_whatever_is_killed_is_started_again(self, up: Running) -> None:
        """Servers too; run.json follows, and the service answers as before."""
        up.start("--workers", "1")
        before = await up.ready()
        await new_agent(up.url, "ada")
        for pid in all_pids(before):
            os.kill(pid, signal.SIGKILL)
        await up.until(lambda: not set(all_pids(up.run())) & set(all_pids(before)))
        await up.until(lambda: _answers(up.url))
        assert await agents(up.url) == ["ada"]


class TestGivenServers:
    """With --no-embedded the servers are somebody else's."""

    async def test_it_serves_on_them(self, up: Running, settings: Settings) -> None:
        """run.json names them, but owns no process of theirs."""
        up.start("--no-embedded", "--workers", "1", **environment_for(settings))
        run = await up.ready()
        assert run["databaseUrl"] == settings.database_url
        assert (run["pids"]["postgres"], run["pids"]["valkey"]) == (None, None)
        assert not (up.data / "postgres").exists()
        assert await up.stop() == 0

    async def test_a_database_that_is_away(self, up: Running) -> None:
        """One sentence, and nothing is started."""
        away = "postgresql://app:secret@127.0.0.1:1/undivided"
        arguments = ("--no-embedded", "--data", str(up.data), "--port", str(up.port))
        code, said = await refused("up", *arguments, DATABASE_URL=away)
        assert (code, said.count("\n")) == (3, 1)
        assert "secret" not in said


class TestRefusals:
    """One sentence that says what to do, and exit code 3."""

    async def test_a_folder_in_use(self, up: Running) -> None:
        """The sentence says where the other one is."""
        up.start("--workers", "1")
        await up.ready()
        code, said = await refused("up", "--data", str(up.data), "--port", "1")
        assert (code, said.count("\n")) == (3, 1)
        assert f"already runs on {up.data} at {up.url}" in said
        other = up.data.with_name("other")
        code, said = await refused("up", "--data", str(other), "--port", str(up.port))
        assert (code, said.count("\n")) == (3, 1)
        assert said.startswith(f"port {up.port} on 127.0.0.1 is taken")

    async def test_a_folder_of_another_postgres(self, up: Running) -> None:
        """It is left as it is."""
        (up.data / "postgres").mkdir(parents=True)
        (up.data / "postgres" / "PG_VERSION").write_text("19\n", encoding="ascii")
        code, said = await refused("up", "--data", str(up.data), "--port", str(up.port))
        assert (code, said.count("\n")) == (3, 1)
        assert "was written by Postgres 19" in said

    async def test_a_folder_of_a_newer_schema(self, up: Running) -> None:
        """An older release does not touch what a newer one wrote."""
        up.start("--workers", "1")
        await up.ready()
        await _as_owner(up, "UPDATE alembic_version SET version_num = '9999'")
        assert await up.stop() == 0
        code, said = await refused("up", "--data", str(up.data), "--port", str(up.port))
        assert (code, said.count("\n")) == (3, 1)
        assert "schema 9999, which this release does not know" in said

    async def test_a_config_with_a_mistake(self, up: Running, tmp_path: Path) -> None:
        """Nothing is started."""
        config = tmp_path / "undivided.toml"
        config.write_text("[workers]\nlease = 3\n", encoding="utf-8")
        code, said = await refused("up", "--data", str(up.data), "--config", str(config))
        assert (code, said.count("\n")) == (3, 1)
        assert f"{config}, line 2: unknown key" in said

    @pytest.mark.parametrize("part", ["api", "worker", "clock", "migrate", "doctor"])
    async def test_no_database_named(self, part: str, tmp_path: Path) -> None:
        """The sentence names the variable."""
        code, said = await refused(part, cwd=tmp_path)
        assert (code, said.count("\n")) == (3, 1)
        assert "DATABASE_URL is not set" in said

    @pytest.mark.parametrize("part", ["worker", "clock"])
    async def test_a_database_of_another_schema(
        self, settings: Settings, database: Database, part: str
    ) -> None:
        """Neither none nor another release's; the sentence says what helps."""
        for change, found in (
            ("UPDATE alembic_version SET version_num = '9999'", "is at schema 9999"),
            ("DROP TABLE alembic_version", "has no schema"),
        ):
            async with await psycopg.AsyncConnection.connect(database.owner_url) as owner:
                await owner.execute(change)
            code, said = await refused(part, cwd=None, **environment_for(settings))
            assert (code, said.count("\n")) == (3, 1)
            assert found in said
            assert "run `undivided migrate`" in said

    async def test_migrating_as_somebody_who_may_not(self, settings: Settings) -> None:
        """The sentence names the variable."""
        environ = {**environment_for(settings), "DATABASE_OWNER_URL": settings.database_url}
        code, said = await refused("migrate", cwd=None, **environ)
        assert (code, said.splitlines()[-1].count("DATABASE_OWNER_URL")) == (3, 1)
        assert "Traceback" not in said


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/readyz", timeout=5).status_code == 200
    except httpx.HTTPError:
        return False


async def _as_owner(up: Running, statement: str) -> None:
    from undivided.cli.surroundings import surroundings

    url = surroundings({}, up.data)["DATABASE_OWNER_URL"]
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        await connection.execute(statement.encode())
