"""`undivided check` and `undivided rebuild` as people and scripts call them."""

from __future__ import annotations

import json

import psycopg
import pytest
from typer.testing import CliRunner, Result

from tests.support.lives import live, log_at
from tests.support.servers import Database, environment_for
from undivided.cli.main import app
from undivided.store.settings import Settings


@pytest.fixture
async def lived(database: Database) -> Database:
    """A database on which an agent lived a little."""
    async with log_at(database.app_url) as log:
        await live(log, "ada")
    return database


def run(settings: Settings, *arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments), env=environment_for(settings))


def tamper(database: Database, statement: str) -> None:
    with psycopg.connect(database.owner_url, autocommit=True) as connection:
        connection.execute(statement.encode())


class TestCheck:
    """Exit code 0 if everything is right, 1 if not."""

    @pytest.mark.usefixtures("lived")
    def test_all_is_well(self, settings: Settings) -> None:
        result = run(settings, "check", "--json")
        told = json.loads(result.stdout)
        assert result.exit_code == 0
        assert (told["ok"], told["found"], told["findings"]) == (True, 0, [])
        assert "everything is right" in run(settings, "check").stdout

    def test_something_is_wrong(self, lived: Database, settings: Settings) -> None:
        tamper(lived, "UPDATE agents SET waiting = 9")
        result = run(settings, "check", "--json")
        told = json.loads(result.stdout)
        assert (result.exit_code, told["ok"], told["found"]) == (1, False, 1)
        (finding,) = told["findings"]
        assert (finding["invariant"], finding["rule"]) == (10, "row_differs")
        assert finding["subject"] == "agents/ada"
        shown = run(settings, "check")
        assert shown.exit_code == 1
        assert "agents/ada" in shown.stdout

    def test_it_is_mended(self, lived: Database, settings: Settings) -> None:
        tamper(lived, "UPDATE agents SET waiting = 9")
        result = run(settings, "check", "--repair", "--json")
        told = json.loads(result.stdout)
        assert (result.exit_code, told["found"], told["left"]) == (0, 1, 0)
        assert told["findings"][0]["repaired"]
        assert run(settings, "check").exit_code == 0


class TestRebuild:
    """It says what it did, or in one sentence why not."""

    def test_everything(self, lived: Database, settings: Settings) -> None:
        tamper(lived, "DELETE FROM items")
        result = run(settings, "rebuild", "--json")
        told = json.loads(result.stdout)
        assert result.exit_code == 0
        assert "items" in told["tables"]
        assert told["events"] > 0
        assert run(settings, "check").exit_code == 0

    @pytest.mark.usefixtures("lived")
    def test_one_projection(self, settings: Settings) -> None:
        assert "rebuilt items from" in run(settings, "rebuild", "items").stdout

    def test_one_that_is_not_there(self, settings: Settings) -> None:
        result = run(settings, "rebuild", "dreams")
        assert result.exit_code == 2
        assert "one of: agents" in result.stderr


def test_without_a_database_it_says_what_to_do(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("empty")
    runner = CliRunner()
    result = runner.invoke(app, ["check", "--data", str(folder)], env={"DATABASE_URL": ""})
    assert result.exit_code == 3
    assert "DATABASE_URL is not set" in result.stderr


@pytest.mark.parametrize("command", ["check", "rebuild", "export ada"])
def test_a_database_of_another_schema_is_told(
    database: Database, settings: Settings, command: str
) -> None:
    """One sentence and exit code 3, and no fragment of SQL."""
    for table in ("notices", "memories", "decisions", "activities", "turns", "agents", "events"):
        tamper(database, f"ALTER TABLE {table} RENAME TO {table}_of_another_release")
    result = run(settings, *command.split())
    assert result.exit_code == 3
    assert "run `undivided migrate`" in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_database_that_is_down_is_told() -> None:
    nobody = "postgresql://nobody@127.0.0.1:1/none"
    for command in ("check", "rebuild"):
        result = CliRunner().invoke(app, [command], env={"DATABASE_URL": nobody})
        assert result.exit_code == 3, result.output
        assert "Traceback" not in result.output
