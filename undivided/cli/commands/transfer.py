"""`undivided export` and `undivided import`: a history in a file, and out of one."""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer
from msgspec import to_builtins
from rich.console import RenderableType
from rich.text import Text

from undivided.cli.answers import show
from undivided.cli.client import USAGE
from undivided.cli.database import Data, Meter, carry_out, find_settings, metered
from undivided.cli.options import AsJson
from undivided.cli.readers.conversation import ReaderMistake
from undivided.cli.readers.detection import FORMATS, read_conversation
from undivided.cli.readers.own_export import FORMAT as OWN
from undivided.cli.readers.own_export import recognises
from undivided.cli.readers.source import parse
from undivided.cli.rehearse.cast import slug
from undivided.cli.rehearse.plan import PlanMistake, plan_rehearsal
from undivided.cli.surroundings import DEFAULT_DATA
from undivided.cli.transfer.foreign import conversation_history
from undivided.cli.transfer.own import transactions
from undivided.domain.errors import Invalid
from undivided.domain.ids import checked_id
from undivided.domain.transplant import agent_of, names_for, renamed
from undivided.store.database import Database
from undivided.store.exporting import export
from undivided.store.importing import History, Imported, import_history
from undivided.store.settings import Settings


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.command(name="export")(export_command)
    app.command(name="import")(import_command)


def export_command(
    what: Annotated[str, typer.Argument(metavar="AGENT|SESSION", help="What to write out.")],
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE", help="Where to; standard output without it.", show_default=False
        ),
    ] = None,
    redact: Annotated[
        bool, typer.Option("--redact", help="Leave the structure, and blot out all content.")
    ] = False,
    data: Data = DEFAULT_DATA,
) -> None:
    """Write the history of an agent, or of one session, to a file (JSONL).

    It replays to the same state wherever it is imported.
    """
    settings = find_settings(data)
    with metered(what, quiet=not sys.stderr.isatty()) as meter:
        if file is None:
            carry_out(_export(settings, what, redact, (sys.stdout, meter)))
            return
        draft = file.with_name(f".{file.name}.part")
        try:
            with draft.open("w", encoding="ascii") as out:
                carry_out(_export(settings, what, redact, (out, meter)))
            draft.replace(file)
        except OSError as error:
            raise _mistake(f"{file} cannot be written: {error.strerror}") from error
        finally:
            draft.unlink(missing_ok=True)


async def _export(settings: Settings, what: str, redact: bool, to: tuple[TextIO, Meter]) -> None:
    out, meter = to
    database = Database(settings.database_url, size=2, name="undivided export")
    await database.open()
    try:
        async for text in export(database, what, redact, meter):
            out.write(text)
    finally:
        await database.close()


def import_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What to bring in.")],
    format_: Annotated[
        str | None,
        typer.Option("--format", help=f"One of {', '.join(FORMATS)}; told by the content without."),
    ] = None,
    as_: Annotated[
        str | None,
        typer.Option(
            "--as",
            help="Under this id instead of its own (for a conversation: before each speaker).",
            show_default=False,
        ),
    ] = None,
    data: Data = DEFAULT_DATA,
    as_json: AsJson = False,
) -> None:
    """Bring in an export, or a conversation that others recorded, as history.

    Nothing runs because of it but what was waiting when it was exported. An import that broke
    off can be repeated.
    """
    try:
        if as_ is not None:
            checked_id(as_, "--as")
        history = _history(file, format_, as_)
        for _ in history():
            pass  # a mistake anywhere in the file is told before anything is written
    except (ReaderMistake, PlanMistake, Invalid) as error:
        raise _mistake(str(error)) from error
    settings = find_settings(data)
    urls = (settings.database_url, settings.database_direct_url)
    with metered(file.name, quiet=as_json) as meter:
        imported = carry_out(import_history(urls, history, meter))
    show(_told(imported), as_json, _view)


def _history(file: Path, format_: str | None, as_: str | None) -> History:
    own = format_ == OWN if format_ is not None else _looks_own(file)
    return _own(file, as_) if own else _foreign(file, format_, as_)


def _looks_own(file: Path) -> bool:
    try:
        with file.open(encoding="utf-8-sig") as lines:
            return recognises(parse(file.name, lines.readline()))
    except (OSError, ValueError, ReaderMistake):
        return False


def _own(file: Path, as_: str | None) -> History:
    history: History = partial(transactions, file)
    if as_ is None:
        return history
    events = (recorded for transaction in history() for recorded in transaction)
    agent = agent_of(events)
    if agent is None:
        raise ReaderMistake(file.name, "", "has no agent.created, so nothing can be renamed")
    names = names_for((agent, as_), (r for transaction in history() for r in transaction))
    return lambda: ([renamed(r, names) for r in transaction] for transaction in history())


def _foreign(file: Path, format_: str | None, as_: str | None) -> History:
    plan = plan_rehearsal(read_conversation(file, format_))
    run = as_ or slug(re.sub(r"\.\w+$", "", file.name))
    begin = datetime.now(UTC) - timedelta(milliseconds=10 * len(plan.turns))
    return lambda: conversation_history(plan, run, begin)


def _mistake(text: str) -> typer.Exit:
    typer.echo(text, err=True)
    return typer.Exit(USAGE)


def _told(imported: Imported) -> dict[str, Any]:
    told: dict[str, Any] = to_builtins(imported)
    return told


def _view(told: dict[str, Any]) -> RenderableType:
    count = f"{told['written']} events written"
    if told["present"]:
        count += f", {told['present']} were there already"
    names = ", ".join(told["agents"]) or "no agent"
    return Text(f"{names}: {count}, sessions {', '.join(told['sessions']) or 'none'}")
