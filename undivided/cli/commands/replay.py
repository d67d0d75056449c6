"""`undivided replay`: an agent or a session as it was, step by step, and what changed between."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any

import typer
from msgspec import to_builtins
from rich.console import Group, RenderableType

from undivided.cli.answers import show, terminal
from undivided.cli.client import failures_told
from undivided.cli.database import Data, carry_out
from undivided.cli.options import AsJson, At, Url
from undivided.cli.replay.changes import Change, changes
from undivided.cli.replay.states import State, state_of
from undivided.cli.replay.stepping import print_steps, step_told, steps, walk
from undivided.cli.replay.story import Asked, Story, load_story
from undivided.cli.replay.views import changes_view, state_view
from undivided.cli.surroundings import DEFAULT_DATA
from undivided.cli.views.cells import heading


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command()(replay)


def replay(
    what: Annotated[str, typer.Argument(metavar="AGENT|SESSION", help="What to replay.")],
    at: At = None,
    step: Annotated[
        bool, typer.Option("--step", help="Go through its events, forward and back.")
    ] = False,
    diff: Annotated[
        tuple[str, str] | None,
        typer.Option("--diff", metavar="A B", help="What differs between two moments."),
    ] = None,
    url: Url = None,
    data: Data = DEFAULT_DATA,
    as_json: AsJson = False,
) -> None:
    """Show an agent, with its sessions, or one session as it was at any moment.

    It asks the service; where none answers, the database itself.
    """
    asked = Asked(name=what, url=url, data=data)
    if diff is not None:
        _diff(asked, diff, as_json)
    elif step:
        _step(_load(asked, at), as_json)
    else:
        show(state_of(_load(asked, at)), as_json, state_view)


def _load(asked: Asked, at: str | None) -> Story:
    with failures_told():
        return carry_out(load_story(asked, at))


def _diff(asked: Asked, diff: tuple[str, str], as_json: bool) -> None:
    before, after = (state_of(_load(asked, at)) for at in diff)
    changed = changes(before, after)
    told = {
        "kind": after["kind"],
        "id": after["id"],
        "from": _place(before),
        "to": _place(after),
        "changed": to_builtins(changed),
    }
    show(told, as_json, lambda _told: _diff_view(before, after, changed))


def _place(state: State) -> dict[str, Any]:
    return {"position": state["position"], "time": state["time"]}


def _diff_view(before: State, after: State, changed: list[Change]) -> RenderableType:
    title = (
        f"{after['kind']} {after['id']} from {before['position'] or 'its beginning'} "
        f"to {after['position'] or 'its beginning'}"
    )
    return Group(heading(title), changes_view(changed))


def _step(story: Story, as_json: bool) -> None:
    if as_json:
        for one in steps(story):
            typer.echo(json.dumps(step_told(story, one)))
    elif sys.stdin.isatty() and sys.stdout.isatty():
        walk(story, terminal(), typer.getchar)
    else:
        print_steps(story, terminal())
