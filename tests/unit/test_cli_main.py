"""The command line as a whole: what there is, and what its help says."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from typing import Any

import pytest
import typer
from typer.main import get_group
from typer.testing import CliRunner

from undivided.cli.main import PARTS, app

WIDE = {"COLUMNS": "200", "TERM": "dumb"}
COMMANDS = [name for _, _, names in PARTS for name in names]
CHANGES = ("create", "show", "start", "stop", "pause", "resume", "delete")
READING = {
    ("agents",), ("agents", "show"), ("mind",), ("mailbox",), ("tail",), ("replay",), ("check",),
    ("doctor",), ("approvals",),
}  # fmt: skip


def told(*arguments: str, code: int = 0) -> str:
    """What a command says."""
    result = CliRunner().invoke(app, list(arguments), env=WIDE)
    assert result.exit_code == code, result.output
    return result.output


def registered(module: str) -> dict[str, Any]:
    """The commands that a module adds."""
    part = typer.Typer()
    part.callback()(lambda: None)
    import_module(f"undivided.cli.commands.{module}").register(part)
    return dict(get_group(part).commands)


@pytest.mark.parametrize(("module", "names"), [(module, names) for _, module, names in PARTS])
def test_a_module_registers_what_the_table_says(module: str, names: tuple[str, ...]) -> None:
    """No command is missing, and none cannot be found."""
    assert set(registered(module)) == set(names)


def test_the_help_names_every_command_under_its_heading() -> None:
    """In the order in which somebody new needs them."""
    text = told("--help")
    places = [
        text.index(part) for heading, _, names in PARTS for part in (heading, f" {names[0]} ")
    ]
    assert places[1::2] == sorted(places[1::2])
    assert all(f" {name} " in text for name in COMMANDS)
    assert "Begin with: undivided up" in text


@pytest.mark.parametrize(
    "command",
    [*((name,) for name in COMMANDS), *(("agents", change) for change in CHANGES)],
    ids=" ".join,
)
def test_every_command_explains_itself(command: tuple[str, ...]) -> None:
    """A sentence on what it does, and one on each thing that it takes."""
    text = told(*command, "--help")
    assert f"Usage: undivided {' '.join(command)}" in text
    found: Any = app_command(command)
    assert found.help
    for parameter in found.params:
        assert parameter.name == "help" or parameter.help, f"{parameter.name} has no help"
    if command in READING:
        assert "--json" in text


def app_command(command: tuple[str, ...]) -> Any:
    """A command as the library knows it."""
    module = next(module for _, module, names in PARTS if command[0] in names)
    found = registered(module)[command[0]]
    return found.commands[command[1]] if len(command) > 1 else found


def test_it_says_which_release_it_is() -> None:
    """As whoever reports a fault is asked first."""
    assert told("--version").startswith("undivided 0.")


def test_a_slip_is_answered_with_a_suggestion() -> None:
    """Exit code 2: the call was a mistake."""
    assert "Did you mean 'check'" in told("chekc", code=2)


def test_talking_to_an_agent_loads_no_database() -> None:
    """An answer within a moment, not after what it does not need."""
    code = (
        "import sys; from undivided.cli.main import app; app(['send', '--help'], "
        "standalone_mode=False); print({'sqlalchemy', 'psycopg', 'redis'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout.endswith("set()\n")
