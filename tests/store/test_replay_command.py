"""`undivided replay` against the database alone: any agent or session at any moment."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from tests.support.lives import accept, answer, begin, create, live, log_at
from tests.support.servers import Database, environment_for
from undivided.cli.main import app
from undivided.store.settings import Settings

NO_SERVICE = {"UNDIVIDED_URL": "http://127.0.0.1:1"}


@pytest.fixture
async def told(database: Database) -> Database:
    """An agent that answered three messages."""
    async with log_at(database.app_url) as log:
        await create(log, "ada")
        for n in (1, 2, 3):
            await accept(log, "ada", f"question {n}")
            assert await answer(log, await begin(log, "ada"), f"answer {n}") is None
    return database


async def run(settings: Settings, *arguments: str, code: int = 0) -> Result:
    environment = environment_for(settings) | NO_SERVICE
    result = await asyncio.to_thread(CliRunner().invoke, app, list(arguments), env=environment)
    assert result.exit_code == code, result.output
    return result


async def state(settings: Settings, *arguments: str) -> Any:
    return json.loads((await run(settings, "replay", *arguments, "--json")).stdout)


def contents(shown: Any) -> list[str]:
    return [message["content"] for message in shown.get("messages", [])]


SAID = ["question 1", "answer 1", "question 2", "answer 2", "question 3", "answer 3"]


@pytest.mark.usefixtures("told")
class TestAt:
    """As it was at any message."""

    async def test_now(self, settings: Settings) -> None:
        shown = await state(settings, "ada")
        assert shown["agent"]["status"] == "started"
        assert shown["items"] == {"completed": 3}
        assert contents(shown["sessions"]["ses_ada"]) == SAID

    async def test_a_session_at_every_message(self, settings: Settings) -> None:
        whole = await state(settings, "ses_ada")
        assert contents(whole) == SAID
        for number, message in enumerate(whole["messages"], start=1):
            then = await state(settings, "ses_ada", "--at", message["position"])
            assert contents(then) == SAID[:number]
            assert then["position"] == message["position"]

    async def test_an_agent_in_the_middle_of_a_turn(self, settings: Settings) -> None:
        whole = await state(settings, "ses_ada")
        second = whole["messages"][2]
        then = await state(settings, "ada", "--at", second["position"])
        assert then["attention"]["state"] == "focused"
        assert then["attention"]["turnId"] == second["turnId"]
        assert contents(then["sessions"]["ses_ada"]) == SAID[:3]

    async def test_before_it_began(self, settings: Settings) -> None:
        shown = await run(settings, "replay", "ada", "--at", "0-0")
        assert "had not begun" in shown.stdout

    async def test_shown_to_people(self, settings: Settings) -> None:
        shown = (await run(settings, "replay", "ses_ada")).stdout
        assert shown.index("question 1") < shown.index("answer 1") < shown.index("question 2")

    @pytest.mark.parametrize("at", ["yesterday", "9999999999999-1", "3000-01-01T00:00:00Z"])
    async def test_no_moment(self, settings: Settings, at: str) -> None:
        assert (await run(settings, "replay", "ada", "--at", at, code=2)).stderr

    async def test_nobody(self, settings: Settings) -> None:
        assert "no agent and no session" in (await run(settings, "replay", "eve", code=2)).stderr


@pytest.mark.usefixtures("told")
class TestStep:
    """Every event in turn, with what it changed."""

    async def test_of_a_session(self, settings: Settings) -> None:
        result = await run(settings, "replay", "ses_ada", "--step", "--json")
        lines = [json.loads(line) for line in result.stdout.splitlines()]
        assert [line["step"] for line in lines] == list(range(1, lines[0]["of"] + 1))
        said = [
            change["after"]["content"]
            for line in lines
            for change in line["changed"]
            if change["path"].startswith("messages[")
        ]
        assert said == SAID
        assert lines[0]["type"] == "session.opened"

    async def test_of_an_agent_for_people(self, settings: Settings) -> None:
        shown = (await run(settings, "replay", "ada", "--step")).stdout
        assert "agent.created" in shown
        assert "turn.ended" in shown


@pytest.mark.usefixtures("told")
class TestDiff:
    """What differs between two moments."""

    async def test_of_a_session(self, settings: Settings) -> None:
        whole = await state(settings, "ses_ada")
        first, last = whole["messages"][1]["position"], whole["messages"][-1]["position"]
        shown = await state(settings, "ses_ada", "--diff", first, last)
        paths = {change["path"] for change in shown["changed"]}
        assert {"messages[2]", "messages[3]", "messages[4]", "messages[5]"} <= paths
        assert "messages[1]" not in paths
        assert (shown["from"]["position"], shown["to"]["position"]) == (first, last)

    async def test_of_a_moment_and_itself(self, settings: Settings) -> None:
        position = (await state(settings, "ada"))["position"]
        assert (await state(settings, "ada", "--diff", position, position))["changed"] == []

    async def test_for_people(self, settings: Settings) -> None:
        position = (await state(settings, "ada"))["position"]
        shown = (await run(settings, "replay", "ada", "--diff", "0-0", position)).stdout
        assert "agent.name" in shown or "agent " in shown


async def test_whatever_was_said_can_be_shown(database: Database, settings: Settings) -> None:
    """NUL, lone surrogates and terminal escapes included."""
    async with log_at(database.app_url) as log:
        await live(log, "ada", "\x1b[31m \ud800 words")
    for how in ([], ["--step"], ["--json"], ["--step", "--json"]):
        result = await run(settings, "replay", "ada", *how)
        assert "\x1b" not in result.stdout
        assert "words" in result.stdout


async def test_without_service_and_database_it_says_so(settings: Settings) -> None:
    environment = environment_for(settings) | NO_SERVICE | {"DATABASE_URL": ""}
    words = ["replay", "ada", "--data", "/nowhere"]
    result = await asyncio.to_thread(CliRunner().invoke, app, words, env=environment)
    assert result.exit_code == 3
    assert "undivided up" in result.stderr
