"""The commands that run the service: all of it, or one part, and bring up its schema."""

from __future__ import annotations

import asyncio
import logging
import os
import shlex
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
import uvloop
from rich.console import Console

from undivided.cli.client import UNREACHABLE
from undivided.cli.stack.folder import port_is_free
from undivided.cli.stack.spawn import Mistake
from undivided.cli.surroundings import DEFAULT_DATA, surroundings
from undivided.domain.errors import Undivided
from undivided.store.settings import Settings, load_settings

Config = Annotated[Path | None, typer.Option(help="TOML config file.", show_default=False)]
Host = Annotated[str, typer.Option(help="Address that the API listens on.")]
Port = Annotated[int, typer.Option(min=1, max=65_535, help="Port that the API listens on.")]
Threads = Annotated[int, typer.Option(min=1, help="Turns that one worker does at once.")]


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.command()(up)
    app.command()(api)
    app.command()(worker)
    app.command()(clock)
    app.command()(migrate)


def up(
    data: Annotated[Path, typer.Option(help="Data folder.")] = DEFAULT_DATA,
    host: Host = "127.0.0.1",
    port: Port = 8420,
    workers: Annotated[int, typer.Option(min=1, help="Worker processes.")] = 2,
    threads: Threads = 8,
    config: Config = None,
    embedded: Annotated[
        bool, typer.Option(help="Bring Postgres and Valkey along, or use given ones.")
    ] = True,
) -> None:
    """Run the whole service in the foreground; Ctrl-C stops it."""
    from undivided.cli.up import Supervisor, UpOptions

    options = UpOptions(
        data=data,
        host=host,
        port=port,
        workers=workers,
        threads=threads,
        config=config,
        embedded=embedded,
    )
    tell = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
    with one_sentence():
        supervisor = Supervisor(options, os.environ, tell.print)
        asyncio.run(supervisor.run(_ready))
    typer.echo("stopped")


def api(host: Host = "127.0.0.1", port: Port = 8420, config: Config = None) -> None:
    """Run the API against the given servers."""

    async def serving(settings: Settings) -> None:
        from undivided.api.serve import serve

        if not port_is_free(host, port):
            raise Mistake(f"port {port} on {host} is taken; choose another with --port")
        await serve(settings, host, port)

    _run(serving, config)


def worker(threads: Threads = 8, config: Config = None) -> None:
    """Run one worker process against the given servers; SIGTERM lets it leave in order."""

    async def working(settings: Settings) -> None:
        from undivided.workers.process import work

        await work(settings, threads)

    _run(working, config)


def clock(config: Config = None) -> None:
    """Run the clock, which keeps house for everybody."""

    async def ticking(settings: Settings) -> None:
        from undivided.workers.clock import tick

        await tick(settings)

    _run(ticking, config)


def migrate(config: Config = None) -> None:
    """Bring the database to the schema of this release; needs the owner's address."""
    from sqlalchemy.exc import OperationalError, ProgrammingError

    from undivided.store.migrate import migrate as migrated

    with one_sentence():
        settings = load_settings(surroundings(os.environ), config)
        try:
            typer.echo(f"schema {migrated(settings)}")
        except OperationalError as error:
            raise Mistake(f"the database cannot be reached: {error.orig}") from None
        except ProgrammingError as error:
            said = str(error.orig).partition("\n")[0]
            raise Mistake(
                f"the schema cannot be changed: {said}; "
                "let DATABASE_OWNER_URL name the role that owns the database"
            ) from None


@contextmanager
def one_sentence() -> Iterator[None]:
    """End the command with the sentence of a mistake, and exit code 3."""
    try:
        yield
    except (Undivided, Mistake) as error:
        typer.echo(" ".join(str(error).split()), err=True)
        raise typer.Exit(UNREACHABLE) from None
    except PermissionError as error:
        typer.echo(f"{error.filename}: {error.strerror}; run as the owner of it", err=True)
        raise typer.Exit(UNREACHABLE) from None


def _run(main: Callable[[Settings], Awaitable[None]], config: Path | None) -> None:
    logging.basicConfig(
        level=os.environ.get("UNDIVIDED_LOG_LEVEL", "INFO").upper(),
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
        stream=sys.stderr,
    )
    logging.getLogger("httpx").setLevel(logging.WARNING)
    with one_sentence():
        settings = load_settings(surroundings(os.environ), config)

        async def started() -> None:
            await main(settings)

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(started())


def _ready(url: str) -> None:
    """Say where the service is; the first line is for programs, the rest for people."""
    say = Console(highlight=False, soft_wrap=True)
    print(f"ready {url}", flush=True)  # noqa: T201 exactly this line, whatever the terminal
    say.print(f"  console  [bold]{url}/[/bold]")
    name = Path(sys.argv[0]).name
    beside = Path(sys.executable).with_name("undivided")
    command = "undivided" if name == "undivided" and _on_path() else str(beside)
    arguments = shlex.join(["--url", url]) if not url.endswith(":8420") else ""
    say.print(f"  try      [bold]{command} agents {arguments}[/bold]".rstrip())
    say.print("  stop     Ctrl-C")


def _on_path() -> bool:
    from shutil import which

    return which("undivided") is not None
