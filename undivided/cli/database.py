"""How commands that need the database itself find it, and what they say when it does not answer."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypeVar

import psycopg
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from undivided.cli.client import NO, UNREACHABLE, USAGE
from undivided.cli.surroundings import DEFAULT_DATA, surroundings
from undivided.domain.errors import Invalid, NotFound, Unavailable, Undivided
from undivided.store.schema import SchemaNotCurrent
from undivided.store.settings import Settings, SettingsMistake, load_settings

T = TypeVar("T")
NO_SCHEMA = (
    psycopg.errors.UndefinedTable,
    psycopg.errors.UndefinedColumn,
    psycopg.errors.UndefinedFunction,
)
NOT_OURS = "the database's schema is not the one this release needs; run `undivided migrate`"


Data = Annotated[
    Path,
    typer.Option(
        "--data",
        help="Folder of the running stack whose database is meant; DATABASE_URL wins.",
    ),
]


def find_settings(data: Path = DEFAULT_DATA) -> Settings:
    """Settings of the environment, or of the stack that runs on a data folder."""
    try:
        return load_settings(surroundings(os.environ, data))
    except SettingsMistake as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(UNREACHABLE) from error


def carry_out(work: Coroutine[Any, Any, T]) -> T:
    """Run a command's work on the database; a refusal becomes a sentence and an exit code."""
    try:
        return asyncio.run(work)
    except (Unavailable, psycopg.OperationalError) as error:
        raise _exit(error, UNREACHABLE) from error
    except NO_SCHEMA as error:
        raise _exit(SchemaNotCurrent(NOT_OURS), UNREACHABLE) from error
    except (Invalid, NotFound) as error:
        raise _exit(error, USAGE) from error
    except (Undivided, psycopg.Error) as error:
        raise _exit(error, NO) from error


def _exit(error: Exception, code: int) -> typer.Exit:
    typer.echo(" ".join(str(error).split()), err=True)
    return typer.Exit(code)


class Meter:
    """A progress bar on standard error that is told how much of how much is done."""

    def __init__(self, progress: Progress, name: str) -> None:
        self._progress = progress
        self._task = progress.add_task(name, total=None)

    def __call__(self, done: int, total: int) -> None:
        """Move the bar."""
        self._progress.update(self._task, completed=done, total=total)


@contextmanager
def metered(name: str, quiet: bool = False) -> Iterator[Meter]:
    """A progress bar for as long as the work takes, gone afterwards; none where nobody looks."""
    console = Console(stderr=True)
    progress = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=quiet or not console.is_terminal,
    )
    with progress:
        yield Meter(progress, name)
