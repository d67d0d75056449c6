"""`undivided tail`: the log as it grows, event by event."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from undivided.cli.answers import terminal
from undivided.cli.client import Client, connect, finish
from undivided.cli.options import AsJson, Url
from undivided.cli.views.cells import moment, one_line

PATIENCE_S = 60.0
_CUT = 160
_NO_STREAM = "none"
_QUIET = {"agentId", "sessionId", "epoch", "decision", "backstopS", "policy"}
"""Fields that every other event has, or that are long; the id of the stream says the first."""


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command()(tail)


def tail(
    from_: Annotated[
        str | None,
        typer.Option("--from", metavar="COORD", show_default=False,
                     help="Begin behind this position or time (0-0: from the first event on); "
                     "without it, with what happens now."),
    ] = None,
    stream: Annotated[
        str | None,
        typer.Option(help="Only of these streams, such as agent:lead.", show_default=False),
    ] = None,
    type_: Annotated[
        str | None,
        typer.Option("--type", help="Only of these types, such as turn.ended.",
                     show_default=False),
    ] = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Follow the log: every event, once and in order, until interrupted."""
    wanted = {"stream": stream, "type": type_}
    with suppress(KeyboardInterrupt):
        finish(_follow(url, from_, wanted, as_json))


async def _follow(
    url: str | None, from_: str | None, wanted: dict[str, str | None], as_json: bool
) -> None:
    async with connect(url) as client:  # without patience: says at once that nobody is there
        after = await _place(client, from_)
    console = terminal()
    async with connect(url, PATIENCE_S) as client:
        async for event in client.events("/events/stream", after=after, **wanted):
            if event.id is not None:
                _show(json.loads(event.data), console, as_json)


async def _place(client: Client, from_: str | None) -> str | None:
    """The coordinate to begin behind, also where a time was given."""
    at = from_ if from_ and ":" in from_ else None
    page = await client.get("/events", at=at, stream=_NO_STREAM, limit=1)
    return str(page["position"]) if at else from_


def _show(event: dict[str, Any], console: Console, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(event))
    else:
        console.print(event_line(event), soft_wrap=True)


def event_line(event: dict[str, Any]) -> Text:
    """One event on one line."""
    text = Text(f"{event['position']}  {moment(event['recordedAt'])}  ", style="dim")
    text.append(event["type"], style="bold not dim")
    text.append(f"  {one_line(event['stream'])}")
    told = {k: v for k, v in event["data"].items() if k not in _QUIET and v not in (None, [], {})}
    shown = one_line(" ".join(f"{name}={json.dumps(value)}" for name, value in told.items()))
    text.append(f"  {shown[:_CUT]}{' …' if len(shown) > _CUT else ''}", style="dim")
    return text
