"""The `undivided` command: what there is, in the order and under the headings of its help.

A module of commands is loaded when one of its commands is called, and all of them for the help:
saying something to an agent does not wait for the tools that repair databases.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_group

RUN, TALK, LOOK, PROVE = (
    "Run the service", "Talk to agents", "Look into history", "Check and measure",
)  # fmt: skip
PARTS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    (RUN, "processes", ("up", "api", "worker", "clock", "migrate")),
    (RUN, "doctor", ("doctor",)),
    (TALK, "agents", ("agents",)),
    (TALK, "talking", ("chat", "send")),
    (TALK, "approvals", ("approvals",)),
    (TALK, "minds", ("mind", "mailbox", "why")),
    (LOOK, "tail", ("tail",)),
    (LOOK, "replay", ("replay",)),
    (LOOK, "rehearse", ("rehearse",)),
    (LOOK, "transfer", ("export", "import")),
    (PROVE, "integrity", ("check", "rebuild")),
    (PROVE, "bench", ("bench",)),
)
"""Heading, module in `undivided.cli.commands`, and the commands that it registers."""

BEGIN = (
    "Begin with: undivided up. Then, in another terminal: undivided agents create Ada --id ada, "
    "and undivided chat ada."
)


class Commands(TyperGroup):
    """All commands, each loaded when it is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Their names, in the order of the help."""
        del ctx
        return [name for _, _, names in PARTS for name in names]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """One of them; where there is none of that name, all are loaded, to suggest one."""
        del ctx
        there = any(cmd_name in names for _, _, names in PARTS)
        for heading, module, names in PARTS:
            if cmd_name in names or not there:
                self.commands.update(_loaded(heading, module))
        return self.commands.get(cmd_name)


def _loaded(heading: str, module: str) -> dict[str, Any]:
    part = typer.Typer()
    part.callback()(lambda: None)
    import_module(f"undivided.cli.commands.{module}").register(part)
    commands: dict[str, Any] = dict(get_group(part).commands)
    for command in commands.values():
        command.rich_help_panel = heading
    return commands


app = typer.Typer(
    cls=Commands,
    name="undivided",
    epilog=BEGIN,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,
)


def _tell_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"undivided {version('undivided')}")
        raise typer.Exit


@app.callback()
def undivided(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_tell_version, is_eager=True, help="Say which release."),
    ] = False,
) -> None:
    """One undivided attention for every LLM agent."""
