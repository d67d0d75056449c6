"""`undivided approvals`: what agents ask people, and the answers."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from undivided.cli.answers import show
from undivided.cli.client import USAGE, ask, finish, route, tell
from undivided.cli.options import AsJson, At, Cursor, Limit, Url
from undivided.cli.views.people import approval_view, approvals_view


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command()(approvals)


def approvals(
    answer: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Answer this request; with --approve or --reject.",
                     show_default=False),
    ] = None,
    approve: Annotated[
        bool | None,
        typer.Option("--approve/--reject", help="What the answer is.", show_default=False),
    ] = None,
    option: Annotated[
        str | None,
        typer.Option(help="Which of its options is meant, where it has some of its own.",
                     show_default=False),
    ] = None,
    comment: Annotated[
        str | None, typer.Option(help="What the agent is told besides.", show_default=False)
    ] = None,
    status: Annotated[
        str | None,
        typer.Option(help="Only requests in these states, such as pending,approved.",
                     show_default=False),
    ] = None,
    agent: Annotated[
        str | None, typer.Option(help="Only requests of this agent.", show_default=False)
    ] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    at: At = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """List what agents ask people, newest first; or answer one request, once."""
    if answer is not None:
        _answer(answer, _body(approve, option, comment), url, as_json)
        return
    if approve is not None or option is not None or comment is not None:
        _misused("--approve, --reject, --option and --comment belong to --answer ID")
    query = {"status": status, "agentId": agent, "limit": limit, "cursor": cursor, "at": at}
    show(finish(ask(url, "/approvals", **query)), as_json, approvals_view)


def _answer(approval_id: str, body: dict[str, Any], url: str | None, as_json: bool) -> None:
    show(finish(tell(url, route("approvals", approval_id), body)), as_json, approval_view)


def _body(approve: bool | None, option: str | None, comment: str | None) -> dict[str, Any]:
    if approve is None:
        _misused("say --approve or --reject")
    body = {"approved": approve, "selectedOption": option, "comment": comment}
    return {name: value for name, value in body.items() if value is not None}


def _misused(sentence: str) -> None:
    typer.echo(sentence, err=True)
    raise typer.Exit(USAGE)
