"""`undivided rehearse`: a recorded conversation, or an agent's own history, runs again."""

from __future__ import annotations

import json
import secrets
from functools import partial
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from undivided.cli.answers import terminal
from undivided.cli.client import NO, USAGE, connect, finish
from undivided.cli.options import AsJson, Url
from undivided.cli.readers.conversation import ReaderMistake
from undivided.cli.readers.detection import FORMATS, read_conversation
from undivided.cli.rehearse.again import Replayed, play_again
from undivided.cli.rehearse.drive import Rehearsed, drive
from undivided.cli.rehearse.plan import Plan, PlanMistake, plan_rehearsal

PATIENCE_S = 60.0


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""

    @app.command()
    def rehearse(
        what: Annotated[
            list[str],
            typer.Argument(metavar="FILE|AGENT", help="Recorded conversations, or one agent."),
        ],
        format_: Annotated[
            str | None,
            typer.Option(
                "--format",
                help=f"One of {', '.join(FORMATS)}; told by the content without.",
                show_default=False,
            ),
        ] = None,
        url: Url = None,
        patience: Annotated[
            float, typer.Option(help="Seconds to wait for a server or worker that is away.")
        ] = PATIENCE_S,
        as_json: AsJson = False,
    ) -> None:
        """Run recorded conversations again through the service, or an agent's own history."""
        if len(what) == 1 and not _is_file(what[0]):
            fine = _agent(what[0], url, patience, as_json)
        else:
            fine = _files(_plans(what, format_), url, patience, as_json)
        if not fine:
            raise typer.Exit(NO)


def _is_file(text: str) -> bool:
    return Path(text).is_file() or "/" in text or Path(text).suffix in {".json", ".jsonl"}


def _plans(files: list[str], format_: str | None) -> list[Plan]:
    try:
        return [plan_rehearsal(read_conversation(Path(file), format_)) for file in files]
    except (ReaderMistake, PlanMistake) as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(USAGE) from error


def _files(plans: list[Plan], url: str | None, patience_s: float, as_json: bool) -> bool:
    results = finish(_drive_all(plans, url, patience_s, as_json))
    if not as_json:
        terminal().print(_table(plans, results))
        for plan in plans:
            if plan.left_out:
                typer.echo(f"{plan.title}: {plan.left_out} thoughts of nobody who speaks left out")
    return all(result.order_kept for result in results)


async def _drive_all(
    plans: list[Plan], url: str | None, patience_s: float, as_json: bool
) -> list[Rehearsed]:
    await _look(url)
    results = []
    async with connect(url, patience_s) as client:
        with _progress() as progress:
            for plan in plans:
                task = progress.add_task(plan.title, total=len(plan.turns))
                advance = partial(progress.advance, task)
                result, trouble = await drive(client, plan, _fresh(), patience_s, advance)
                results.append(result)
                if trouble:
                    typer.echo(f"{plan.title}: {trouble}", err=True)
                if as_json:
                    typer.echo(msgspec.json.encode(result))
    return results


def _agent(agent_id: str, url: str | None, patience_s: float, as_json: bool) -> bool:
    replayed = finish(_again(agent_id, url, patience_s))
    if as_json:
        typer.echo(json.dumps(msgspec.to_builtins(replayed)))
    else:
        Console().print(_verdict(replayed), markup=False, highlight=False)
    return replayed.divergence is None


async def _look(url: str | None) -> None:
    """Tell at once that no server is there; patience is for one that goes away in mid-run."""
    async with connect(url) as client:
        await client.get("/agents", limit=1)


async def _again(agent_id: str, url: str | None, patience_s: float) -> Replayed:
    await _look(url)
    async with connect(url, patience_s) as client:
        with _progress() as progress:
            task = progress.add_task(agent_id, total=None)
            return await play_again(
                client,
                agent_id,
                _fresh(),
                patience_s,
                lambda done, total: progress.update(task, completed=done, total=total),
            )


def _fresh() -> str:
    return f"reh_{secrets.token_hex(4)}"


def _progress() -> Progress:
    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


def _table(plans: list[Plan], results: list[Rehearsed]) -> Table:
    table = Table("conversation", "messages", "agents", "turns", "wall s", "order kept")
    for plan, result in zip(plans, results, strict=True):
        counts = (result.messages, result.agents, result.turns, f"{result.wall_s:.2f}")
        kept = "yes" if result.order_kept else "no"
        table.add_row(plan.title, *(str(count) for count in counts), kept)
    return table


def _verdict(replayed: Replayed) -> str:
    found = replayed.divergence
    if found is None:
        return f"{replayed.agent_id}: {replayed.turns} turns went the recorded way"
    return (
        f"{replayed.agent_id}: turn {found.turn} of session {found.session_id} differs in its "
        f"{found.what}\n  recorded: {_short(found.recorded)}\n  now:      {_short(found.now)}"
    )


def _short(text: str) -> str:
    line = json.dumps(text[:200], ensure_ascii=True)
    return line if len(text) <= 200 else f"{line} …"
