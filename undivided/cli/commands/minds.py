"""`undivided mind`, `mailbox` and `why`: what an agent attends to, what came to it, and why."""

from __future__ import annotations

from typing import Annotated

import typer

from undivided.cli.answers import show
from undivided.cli.client import ask, finish, route
from undivided.cli.options import AgentId, AsJson, At, Cursor, Limit, Url
from undivided.cli.views.mailbox import mailbox_chosen_view, mailbox_view
from undivided.cli.views.mind import mind_view
from undivided.cli.views.why import why_view


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.command()(mind)
    app.command()(mailbox)
    app.command()(why)


def mind(agent: AgentId, at: At = None, url: Url = None, as_json: AsJson = False) -> None:
    """Show what an agent attends to, what waits for it, and what it decided lately and why."""
    show(finish(ask(url, route("agents", agent, "mind"), at=at)), as_json, mind_view)


def mailbox(
    agent: AgentId,
    status: Annotated[
        str | None,
        typer.Option(help="Only items in these states, such as completed,dead_letter.",
                     show_default=False),
    ] = None,
    type_: Annotated[
        str | None,
        typer.Option("--type", help="Only stimuli of these types, such as human_chat,a2a_message.",
                     show_default=False),
    ] = None,
    category: Annotated[
        str | None,
        typer.Option(help="Only stimuli of this category, such as task.", show_default=False),
    ] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    at: At = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Show everything that reached an agent: what waits, and what became of the rest."""
    chosen = {"status": status, "type": type_, "category": category, "cursor": cursor}
    query = {**chosen, "limit": limit, "at": at}
    box = finish(ask(url, route("agents", agent, "mailbox"), **query))
    show(box, as_json, mailbox_chosen_view if any(chosen.values()) else mailbox_view)


def why(
    item: Annotated[str, typer.Argument(metavar="ITEM", help="Id of the item.")],
    at: At = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Tell an item's whole story: what became of it, by which rules, and what passed it over."""
    show(finish(ask(url, route("items", item, "why"), at=at)), as_json, why_view)
