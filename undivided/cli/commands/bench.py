"""`undivided bench`: every promise about speed beside its reference, in one run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from undivided.cli.bench.groups import GROUPS
from undivided.cli.bench.page import rewrite
from undivided.cli.bench.rows import HEADINGS, Row, as_json, cells
from undivided.cli.client import NO, USAGE
from undivided.cli.options import AsJson
from undivided.cli.stack.spawn import Mistake


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""

    @app.command()
    def bench(
        rows: Annotated[
            str | None, typer.Option(help=f"Only these, separated by commas: {', '.join(GROUPS)}.")
        ] = None,
        quick: Annotated[bool, typer.Option("--quick", help="Less exact, within minutes.")] = False,
        as_json_: AsJson = False,
        write: Annotated[
            Path | None, typer.Option(help="Keep the table in this file, such as a page of docs.")
        ] = None,
    ) -> None:
        """Measure the service beside plain programs that do the same, on servers of its own."""
        found = _measured(_names(rows), quick)
        if as_json_:
            typer.echo(json.dumps(as_json(found), ensure_ascii=False))
        else:
            Console().print(_table(found))
        if write is not None:
            rewrite(write, found, quick)


def _names(rows: str | None) -> list[str]:
    wanted = [name.strip() for name in rows.split(",") if name.strip()] if rows else list(GROUPS)
    for name in wanted:
        if name not in GROUPS:
            typer.echo(f"there are no rows called {name!r}; one of: {', '.join(GROUPS)}", err=True)
            raise typer.Exit(USAGE)
    return wanted


def _measured(names: list[str], quick: bool) -> list[Row]:
    import uvloop

    from undivided.cli.bench.run import run

    with Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
        refresh_per_second=1,
    ) as progress:
        task = progress.add_task("starting servers", total=len(names))
        try:
            return uvloop.run(
                run(
                    names,
                    quick,
                    lambda what: progress.update(task, description=what),
                    lambda: progress.advance(task),
                )
            )
        except Mistake as mistake:
            typer.echo(str(mistake), err=True)
            raise typer.Exit(NO) from mistake


def _table(rows: list[Row]) -> Table:
    table = Table(*HEADINGS)
    for row in rows:
        table.add_row(*cells(row))
    return table
