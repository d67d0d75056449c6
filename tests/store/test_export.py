"""Export and import: a history in a file, and the same rows out of it anywhere else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from typer.testing import CliRunner, Result

from tests.support.lives import accept, answer, begin, create, live, log_at, response
from tests.support.servers import (
    Database,
    Servers,
    environment_for,
    fresh_database,
    settings_for,
)
from undivided.cli.main import app
from undivided.domain.coordinates import Coordinate
from undivided.store import landing
from undivided.store.checking import check
from undivided.store.codec import unescape_text
from undivided.store.horizon import resolve
from undivided.store.settings import Settings
from undivided.store.tables import PROJECTED


@pytest.fixture
async def lived(database: Database) -> Database:
    """A database on which two agents lived a little."""
    async with log_at(database.app_url) as log:
        await live(log, "ada", "secret words of ada")
        await live(log, "bob", "secret words of bob")
    return database


@pytest.fixture
def elsewhere(servers: Servers, template: str) -> Iterator[Database]:
    """Another installation."""
    with fresh_database(servers, template) as fresh:
        yield fresh


@pytest.fixture
def there(servers: Servers, elsewhere: Database) -> Settings:
    """Settings of the other installation."""
    return settings_for(servers, elsewhere.name)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where an export goes."""
    return tmp_path / "history.jsonl"


async def run(settings: Settings, *arguments: str | Path, code: int = 0) -> Result:
    words, environment = [str(one) for one in arguments], environment_for(settings)
    result = await asyncio.to_thread(CliRunner().invoke, app, words, env=environment)
    assert result.exit_code == code, result.output
    return result


def rows_of(database: Database, agent_id: str) -> dict[str, list[Any]]:
    """Every projected row about an agent."""
    rows: dict[str, list[Any]] = {}
    with psycopg.connect(database.owner_url) as connection:
        for table in PROJECTED:
            column = "agent_id" if "agent_id" in table.columns else "id"
            statement = sql.SQL("SELECT to_jsonb(t) FROM {} t WHERE {} = %s ORDER BY t.id").format(
                sql.Identifier(table.name), sql.Identifier(column)
            )
            found = connection.execute(statement, (agent_id,)).fetchall()
            rows[table.name] = [row for (row,) in found]
    return rows


def lines_of(file: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    header, *events = [json.loads(line) for line in file.read_text("ascii").splitlines()]
    return header, events


def without_place(event: dict[str, Any]) -> dict[str, Any]:
    """What an event says, without where it stands and that it was imported."""
    kept = {name: value for name, value in event.items() if name != "position"}
    kept["meta"] = {name: value for name, value in kept["meta"].items() if name != "imported"}
    return kept


class TestAnAgent:
    """It is the same agent elsewhere."""

    async def test_replays_to_the_same_rows(
        self, lived: Database, settings: Settings, there: Settings, elsewhere: Database, file: Path
    ) -> None:
        await run(settings, "export", "ada", file)
        told = json.loads((await run(there, "import", file, "--json")).stdout)
        assert told["agents"] == ["ada"]
        assert rows_of(elsewhere, "ada") == rows_of(lived, "ada")
        assert (await check(elsewhere.app_url)).wrong == []

    async def test_holds_nothing_of_others(
        self, lived: Database, settings: Settings, file: Path
    ) -> None:
        assert rows_of(lived, "bob")["notices"]
        await run(settings, "export", "ada", file)
        assert "of bob" not in file.read_text()
        header, events = lines_of(file)
        assert header["undivided-export"] == 1
        assert {event["stream"] for event in events} == {
            "agent:ada",
            "session:ses_ada",
            "user:owner",
        }

    async def test_is_exported_again_as_it_was(
        self, lived: Database, settings: Settings, there: Settings, file: Path
    ) -> None:
        assert lived.name
        await run(settings, "export", "ada", file)
        await run(there, "import", file)
        again = file.with_name("again.jsonl")
        await run(there, "export", "ada", again)
        before = [without_place(event) for event in lines_of(file)[1]]
        assert [without_place(event) for event in lines_of(again)[1]] == before

    async def test_large_and_awkward_content_survives(
        self,
        database: Database,
        settings: Settings,
        there: Settings,
        elsewhere: Database,
        file: Path,
    ) -> None:
        content = "\x00\ud800\x1a \\u0000" * 60_000
        async with log_at(database.app_url) as log:
            await create(log, "eve")
            await accept(log, "eve", content)
        await run(settings, "export", "eve", file)
        await run(there, "import", file)
        async with log_at(elsewhere.app_url) as log:
            (item,) = (await log.view("eve", 1)).queue
            assert item.payload.content == content

    async def test_goes_on_where_it_stopped(
        self, lived: Database, settings: Settings, there: Settings, elsewhere: Database, file: Path
    ) -> None:
        """What waited waits; what is appended now continues its streams."""
        assert lived.name
        await run(settings, "export", "ada", file)
        await run(there, "import", file)
        async with log_at(elsewhere.app_url) as log:
            await accept(log, "ada", "and now?")
            flight = await begin(log, "ada")
            assert await answer(log, flight, "now this") is None
        assert (await check(elsewhere.app_url)).wrong == []

    async def test_under_another_id_beside_itself(
        self, lived: Database, settings: Settings, file: Path
    ) -> None:
        await run(settings, "export", "ada", file)
        told = json.loads((await run(settings, "import", file, "--as", "ada-2", "--json")).stdout)
        assert (told["agents"], told["sessions"]) == (["ada-2"], ["ses_ada-2"])
        before, after = rows_of(lived, "ada"), rows_of(lived, "ada-2")
        assert {name: len(rows) for name, rows in before.items()} == {
            name: len(rows) for name, rows in after.items()
        }
        assert [row["phase"]["status"] for row in before["items"]] != []
        assert sorted(row["payload"]["content"] for row in before["items"]) == sorted(
            row["payload"]["content"] for row in after["items"]
        )
        assert (await check(lived.app_url)).wrong == []

    async def test_times_of_this_installation_stay_its_own(
        self, lived: Database, settings: Settings, there: Settings, elsewhere: Database, file: Path
    ) -> None:
        """An imported past does not move what `at=` a time means here."""
        await run(settings, "export", "ada", file)
        async with log_at(elsewhere.app_url) as log:
            await create(log, "own")
            before = (await log.database.hear_clock()).isoformat()
            own = await resolve(log.database, before)
            assert own != Coordinate(0, 0)
            await run(there, "import", file)
            assert await resolve(log.database, before) == own
            later = (await log.database.hear_clock()).isoformat()
            assert await resolve(log.database, later) == own
        assert lived.name


class TestASession:
    """The slice of an agent's life that belongs to one conversation."""

    async def test_replays_and_tells_of_no_other(
        self,
        database: Database,
        settings: Settings,
        there: Settings,
        elsewhere: Database,
        file: Path,
    ) -> None:
        async with log_at(database.app_url) as log:
            await live(log, "ada", "in the first")
            await accept(log, "ada", "in the second", session="other")
            flight = await begin(log, "ada")
            await landing.record(log, flight, response(flight, "words in the second"))
            await answer(log, flight, "reply in the second")
        await run(settings, "export", "other", file)
        assert "in the first" not in file.read_text()
        await run(there, "import", file)
        assert (await check(elsewhere.app_url)).wrong == []
        for table in ("sessions", "turns"):
            whole = [r for r in rows_of(database, "ada")[table] if "other" in str(r)]
            assert rows_of(elsewhere, "ada")[table] == whole


class TestRedaction:
    """Structure without content."""

    async def test_no_content_is_left_and_it_still_replays(
        self, lived: Database, settings: Settings, there: Settings, elsewhere: Database, file: Path
    ) -> None:
        await run(settings, "export", "ada", file, "--redact")
        text = file.read_text("ascii")
        for content in ("secret", "words", "Ada", "let me see", "the model would not"):
            assert content not in text, content
        await run(there, "import", file)
        assert (await check(elsewhere.app_url)).wrong == []
        before, after = rows_of(lived, "ada"), rows_of(elsewhere, "ada")
        for table in ("agents", "flights", "items", "sessions", "turns", "activities"):
            assert [shape(row) for row in before[table]] == [shape(row) for row in after[table]]
        assert after["activities"][0]["type"] == before["activities"][0]["type"]


def shape(row: Any, depth: int = 0) -> Any:
    """Ids, numbers, states and times as they are, texts by their lengths."""
    if isinstance(row, dict):
        kept = {"agent_id", "status", "attention_state", "lifecycle", "type", "source_type"}
        kept |= set() if depth else {"id"}
        return {k: v if k in kept else shape(v, depth + 1) for k, v in row.items()}
    if isinstance(row, list):
        return [shape(value, depth + 1) for value in row]
    return len(unescape_text(row)) if isinstance(row, str) else row


class TestImport:
    """All or nothing, once."""

    async def test_twice_is_once(
        self, lived: Database, settings: Settings, there: Settings, elsewhere: Database, file: Path
    ) -> None:
        await run(settings, "export", "ada", file)
        first = json.loads((await run(there, "import", file, "--json")).stdout)
        second = json.loads((await run(there, "import", file, "--json")).stdout)
        assert (second["written"], second["present"]) == (0, first["written"])
        assert rows_of(elsewhere, "ada") == rows_of(lived, "ada")

    async def test_what_broke_off_is_taken_up(
        self, lived: Database, settings: Settings, there: Settings, elsewhere: Database, file: Path
    ) -> None:
        await run(settings, "export", "ada", file)
        lines = file.read_text("ascii").splitlines(keepends=True)
        end = next(
            n for n in range(len(lines) // 2, len(lines)) if txid(lines, n) != txid(lines, n - 1)
        )
        half = file.with_name("half.jsonl")
        half.write_text("".join(lines[:end]))
        await run(there, "import", half)
        told = json.loads((await run(there, "import", file, "--json")).stdout)
        assert told["present"] == end - 1
        assert rows_of(elsewhere, "ada") == rows_of(lived, "ada")
        assert (await check(elsewhere.app_url)).wrong == []

    async def test_another_history_in_the_way_is_refused(
        self, lived: Database, settings: Settings, there: Settings, elsewhere: Database, file: Path
    ) -> None:
        assert lived.name
        await run(settings, "export", "ada", file)
        async with log_at(elsewhere.app_url) as log:
            await create(log, "ada")
        before = rows_of(elsewhere, "ada")
        assert "--as" in (await run(there, "import", file, code=1)).stderr
        assert rows_of(elsewhere, "ada") == before

    async def test_it_keeps_out_of_a_workers_way(
        self, lived: Database, settings: Settings, there: Settings, elsewhere: Database, file: Path
    ) -> None:
        assert lived.name
        await run(settings, "export", "ada", file)
        with psycopg.connect(elsewhere.app_url, autocommit=True) as worker:
            worker.execute("SELECT pg_advisory_lock(hashtextextended('default/ada', 0))")
            assert "a worker is at work" in (await run(there, "import", file, code=1)).stderr
        assert rows_of(elsewhere, "ada")["agents"] == []

    @pytest.mark.parametrize(
        ("broken", "told"),
        [
            ('{"undivided-export": 7}\n', "line 1: must be a header"),
            ('{"undivided-export": 1}\nnonsense\n', "line 2: is not JSON"),
            ('{"undivided-export": 1}\n[]\n', "line 2: must be an event"),
            ('{"undivided-export": 1}\n{"type": "agent.dreamt"}\n', "line 2: type 'agent.dreamt'"),
            ('{"undivided-export": 1}\n{"type": "agent.started"}\n', "line 2: agent.started"),
        ],
    )
    async def test_a_mistake_is_told_with_its_line(
        self, there: Settings, file: Path, broken: str, told: str
    ) -> None:
        file.write_text(broken)
        assert told in (await run(there, "import", file, "--format", "undivided", code=2)).stderr

    async def test_nobody_of_that_name(self, settings: Settings, file: Path) -> None:
        assert (
            "no agent and no session"
            in (await run(settings, "export", "nobody", file, code=2)).stderr
        )
        assert not file.exists()


def txid(lines: list[str], number: int) -> str:
    return str(json.loads(lines[number]).get("position", "")).partition("-")[0]


class TestWhatOthersRecorded:
    """Each speaker becomes an agent whose history holds every invariant."""

    HISTORY = (
        ("human", "How many?"),
        ("Orchestrator (thought)", "I should ask around."),
        ("Orchestrator (-> Counter)", "Please count."),
        ("Counter", "Seven."),
        ("Orchestrator (thought)", "That is plausible."),
        ("Orchestrator", "There are seven."),
        ("human", "Thanks!"),
    )

    async def test_who_and_when(self, there: Settings, elsewhere: Database, tmp_path: Path) -> None:
        file = tmp_path / "case 7.json"
        history = [{"role": role, "content": content} for role, content in self.HISTORY]
        file.write_text(json.dumps({"question": "How many?", "history": history}))
        told = json.loads((await run(there, "import", file, "--json")).stdout)
        assert told["agents"] == ["case-7.1.Orchestrator", "case-7.2.Counter"]
        checked = await check(elsewhere.app_url)
        assert checked.wrong == []
        leads = rows_of(elsewhere, "case-7.1.Orchestrator")
        assert [row["payload"]["content"] for row in leads["items"]] == [
            "How many?",
            "Seven.",
            "Thanks!",
        ]
        assert [row["content"] for row in leads["memories"]] == [
            "I should ask around.",
            "That is plausible.",
        ]
        assert {row["phase"]["status"] for row in leads["items"]} == {"completed"}
        again = json.loads((await run(there, "import", file, "--json")).stdout)
        assert again["written"] == 0

    async def test_openai_chat(self, there: Settings, elsewhere: Database, tmp_path: Path) -> None:
        file = tmp_path / "chat.json"
        said = [("system", "Be kind."), ("user", "Hello"), ("assistant", "Hello to you")]
        file.write_text(json.dumps([{"role": role, "content": text} for role, text in said]))
        told = json.loads((await run(there, "import", file, "--as", "chat", "--json")).stdout)
        assert told["agents"] == ["chat.1.assistant"]
        assert (await check(elsewhere.app_url)).wrong == []

    async def test_an_unknown_format_is_told(self, there: Settings, tmp_path: Path) -> None:
        file = tmp_path / "chat.json"
        file.write_text("{}")
        assert "none of the known formats" in (await run(there, "import", file, code=2)).stderr
        assert (
            "must be one of" in (await run(there, "import", file, "--format", "x", code=2)).stderr
        )
