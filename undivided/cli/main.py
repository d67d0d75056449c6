"""The `undivided` command: every command registers itself here and nothing else happens."""

from __future__ import annotations

import typer

from undivided.cli.commands import (
    agents,
    bench,
    doctor,
    integrity,
    minds,
    processes,
    rehearse,
    replay,
    tail,
    talking,
    transfer,
)

app = typer.Typer(
    name="undivided",
    help="One undivided attention for every LLM agent.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,
)

for command in (
    processes,
    doctor,
    agents,
    talking,
    minds,
    rehearse,
    integrity,
    transfer,
    replay,
    tail,
    bench,
):
    command.register(app)
