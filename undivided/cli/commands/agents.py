"""`undivided agents`: see the agents there are, make new ones, start and stop them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from undivided.cli.answers import show
from undivided.cli.client import USAGE, ask, connect, finish, route, tell
from undivided.cli.options import AgentId, AsJson, At, Cursor, Limit, Url
from undivided.cli.views.agents import agent_line, agent_view, agents_view

COMMANDS = {
    "start": "Let a stopped or paused agent take up its work.",
    "stop": "Interrupt what an agent is doing; what waits in its mailbox goes on waiting.",
    "pause": "Let an agent finish what it is doing, and pick up nothing after it.",
    "resume": "Let a paused agent go on. The same as start.",
}


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    agents = typer.Typer(
        name="agents",
        help="List the agents; create, show, start, stop, pause, resume or delete one.",
        invoke_without_command=True,
        subcommand_metavar="[COMMAND] [ARGS]...",
    )
    agents.callback()(listed)
    agents.command()(create)
    agents.command("show")(show_one)
    for name, sentence in COMMANDS.items():
        _register_change(agents, name, sentence)
    agents.command()(delete)
    app.add_typer(agents)


def listed(
    context: typer.Context,
    limit: Limit = 50,
    cursor: Cursor = None,
    at: At = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """List the agents, oldest first; or do something with one, by a command below."""
    if context.invoked_subcommand is not None:
        _refuse_options(context)
        return
    page = finish(ask(url, "/agents", limit=limit, cursor=cursor, at=at))
    show(page, as_json, agents_view)


def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What people call the agent.")],
    id_: Annotated[
        str | None,
        typer.Option("--id", help="Its id, to be used in commands. Else one is made up.",
                     show_default=False),
    ] = None,
    model: Annotated[
        str,
        typer.Option(help="Which model answers: a profile of the config, or PROVIDER:NAME. "
                     "Without a config, default is a built-in model that needs no network."),
    ] = "default",
    instructions: Annotated[
        str | None,
        typer.Option(help="What the agent is and does, in words; @FILE reads them from a file.",
                     show_default=False),
    ] = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Make a new agent. It is started at once and waits for something to do."""
    body = {"id": id_, "name": name, "model": model, "instructions": _words(instructions)}
    agent = finish(tell(url, "/agents", _present(body)))
    show(agent, as_json, agent_line)


def show_one(agent: AgentId, at: At = None, url: Url = None, as_json: AsJson = False) -> None:
    """Show one agent: its model, instructions, tools and policy."""
    show(finish(ask(url, route("agents", agent), at=at)), as_json, agent_view)


def delete(agent: AgentId, url: Url = None, as_json: AsJson = False) -> None:
    """End an agent for good and cancel what waits for it; its history stays."""
    show(finish(_deleted(agent, url)), as_json, agent_line)


def _register_change(agents: typer.Typer, name: str, sentence: str) -> None:
    def change(agent: AgentId, url: Url = None, as_json: AsJson = False) -> None:
        show(finish(tell(url, route("agents", agent, name), {})), as_json, agent_line)

    agents.command(name, help=sentence)(change)


def _refuse_options(context: typer.Context) -> None:
    """What stands before a command would be lost there."""
    given = [name for name, value in context.params.items() if _was_given(context, name, value)]
    if given:
        option = "--json" if given[0] == "as_json" else f"--{given[0]}"
        typer.echo(f"{option} belongs behind {context.invoked_subcommand}", err=True)
        raise typer.Exit(USAGE)


def _was_given(context: typer.Context, name: str, value: Any) -> bool:
    source = context.get_parameter_source(name)
    return value is not None and source is not None and source.name == "COMMANDLINE"


def _words(given: str | None) -> str | None:
    if given is None or not given.startswith("@"):
        return given
    try:
        return Path(given[1:]).read_text("utf-8")
    except (OSError, ValueError) as error:
        typer.echo(f"--instructions {given}: cannot be read ({error})", err=True)
        raise typer.Exit(USAGE) from error


def _present(body: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if value is not None}


async def _deleted(agent: str, url: str | None) -> Any:
    async with connect(url) as client:
        return await client.delete(route("agents", agent))
