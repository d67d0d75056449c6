"""`undivided send` and `undivided chat`: put something into an agent's mailbox, or converse."""

from __future__ import annotations

import asyncio
import json
import secrets
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Annotated, Any

import typer
from rich.text import Text

from undivided.cli.answers import print_json, terminal
from undivided.cli.chat.screen import Screen
from undivided.cli.chat.spoken import Spoken
from undivided.cli.chat.talk import Heard, Said, Talk
from undivided.cli.client import (
    NO,
    OVER,
    Client,
    Problem,
    ask,
    connect,
    failures_told,
    finish,
    route,
)
from undivided.cli.options import AgentId, AsJson, Url
from undivided.cli.views.cells import one_line, plain
from undivided.domain.stimuli import HUMAN_CHAT, REGISTRY

PATIENCE_S = 30.0
ARGUMENTS = 120
TYPES = ", ".join(REGISTRY)
Session = Annotated[
    str | None,
    typer.Option(
        help="Conversation it belongs to. Else the agent's own one for such things.",
        show_default=False,
    ),
]


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.command(epilog=f"Types there are: {TYPES}.")(send)
    app.command()(chat)


def send(
    agent: AgentId,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What it says; - reads it from "
                                        "standard input.")],
    type_: Annotated[
        str, typer.Option("--type", help="What kind of thing reaches the agent; see below.")
    ] = HUMAN_CHAT,
    priority: Annotated[
        int | None,
        typer.Option(min=0, max=4, help="0 critical, 1 high, 2 normal, 3 low, 4 background. Else "
                     "the usual one of its type.", show_default=False),
    ] = None,
    session: Session = None,
    sender: Annotated[
        str | None, typer.Option(help="Who sends it, by name or id.", show_default=False)
    ] = None,
    wait: Annotated[
        float,
        typer.Option(min=0, max=3600, help="Seconds to wait for the reply; 0 does not wait."),
    ] = 0,
    url: Url = None,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Put a message into an agent's mailbox, and print the reply if you wait for it."""
    said = sys.stdin.read() if text == "-" else text
    body = {
        "sourceType": type_,
        "payload": {"content": said},
        "metadata": sender_of(type_, sender),
        "priority": priority,
        "sessionId": session,
    }
    accepted, done = finish(_sent(agent, body, wait, url))
    if as_json:
        print_json(done or accepted)
    if done is not None:
        _end(Said(done), as_json)
    elif wait:
        _no(f"no reply within {wait:g} s; {accepted['itemId']} stays in the mailbox of {agent}")
    elif not as_json:
        typer.echo(f"queued {accepted['itemId']}")


def sender_of(type_: str, sender: str | None) -> dict[str, str]:
    """Who sends a stimulus of this type from the command line: a person, mostly."""
    kind = REGISTRY.get(type_)
    machine = {"system": "system", "orchestration": "system"}.get(kind.category if kind else "")
    role = machine or ("agent" if kind is not None and kind.sender == "agent" else "user")
    return {"senderRole": role, **({"senderId": sender, "senderName": sender} if sender else {})}


async def _sent(
    agent: str, body: dict[str, Any], wait_s: float, url: str | None
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """What accepting answered, and how it ended if it did in time."""
    key = secrets.token_hex(16)
    async with connect(url) as client:
        accepted = await client.post(route("agents", agent, "mailbox"), body, key)
    if not wait_s:
        return accepted, None
    async with connect(url, patience_s=wait_s) as client:
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                return accepted, await _ended(client, agent, accepted["position"], key)
    return accepted, None


async def _ended(client: Client, agent: str, place: str, key: str) -> dict[str, Any]:
    path = route("agents", agent, "messages")
    async for event in client.conversation(path, {}, f"{key}.end", after=place):
        if event.event in OVER:
            done: dict[str, Any] = json.loads(event.data)
            return done
    raise AssertionError("a conversation ends with its end")


def chat(
    agent: AgentId,
    session: Session = None,
    sender: Annotated[str | None, typer.Option(help="Your name.", show_default=False)] = None,
    url: Url = None,
) -> None:
    """Talk with an agent: its replies appear while they are written.

    Each line is a message. Ctrl-C stops a reply, Ctrl-D leaves.

    Lines can also be piped in; then only the replies are printed.
    """
    known = finish(ask(url, route("agents", agent)))
    fixed = {"senderId": sender, "senderName": sender, "sessionId": session}
    with failures_told(), asyncio.Runner() as runner:
        talk = Talk(connect(url, PATIENCE_S), agent, fixed)
        if sys.stdin.isatty() and sys.stdout.isatty():
            _converse(runner, talk, known)
        else:
            well = [_piped(runner, talk, line) for line in sys.stdin if line.strip()]
            if not all(well):
                raise typer.Exit(NO)


def _piped(runner: asyncio.Runner, talk: Talk, line: str) -> bool:
    """One message and its whole reply; whether the turn was completed."""
    said = runner.run(talk.say(line.rstrip("\r\n"), lambda *_: None))
    typer.echo(plain(said.reply))
    if not said.well:
        typer.echo(_outcome(said.told), err=True)
    return said.well


def _converse(runner: asyncio.Runner, talk: Talk, agent: dict[str, Any]) -> None:
    """A person types; a refusal is told and does not end the chat."""
    screen = Screen(sys.stdout)
    _greet(agent, screen)
    for line in _typed():
        screen.prompt(agent["name"])
        try:
            said = runner.run(talk.say(line, _shown_on(screen)))
        except KeyboardInterrupt:
            screen.note(runner.run(talk.stop()))
        except Problem as error:
            screen.note(str(error))
        else:
            screen.end()
            if not said.well:
                screen.note(_outcome(said.told))


def _shown_on(screen: Screen) -> Heard:
    """Show a reply while it grows, and between its parts the tools that the agent uses."""
    spoken = Spoken()

    def heard(event: str, data: dict[str, Any], recorded: bool) -> None:
        change = spoken.take(event, data, recorded)
        if change is not None:
            screen.show(change)
        if event == "tool_start":
            screen.note(_called(data))

    return heard


def _called(data: dict[str, Any]) -> str:
    arguments = json.dumps(data["args"], ensure_ascii=False)
    short = arguments if len(arguments) <= ARGUMENTS else f"{arguments[:ARGUMENTS]} …"
    return f"{data['tool']} {short}"


def _typed() -> Iterator[str]:
    with suppress(ImportError):
        import readline  # noqa: F401 it gives input() a history and arrow keys
    while True:
        try:
            line = input("you> ")
        except (EOFError, KeyboardInterrupt):
            typer.echo("")
            return
        if line.strip():
            yield line


def _greet(agent: dict[str, Any], screen: Screen) -> None:
    about = Text.assemble((one_line(agent["name"]), "bold"), f" ({agent['id']}) listens. ")
    terminal().print(about.append("Ctrl-C stops a reply, Ctrl-D leaves.", style="dim"))
    if agent["status"] != "started":
        screen.note(f"{agent['id']} is {agent['status']}: undivided agents resume {agent['id']}")


def _end(said: Said, silent: bool) -> None:
    if said.reply and not silent:
        typer.echo(plain(said.reply))
    if not said.well:
        _no(_outcome(said.told))


def _outcome(told: dict[str, Any]) -> str:
    status, outcome = told.get("status"), told.get("outcome")
    how = outcome if outcome == status else f"{status} ({outcome})"
    return one_line(f"no reply: {told['itemId']} ended {how}")


def _no(sentence: str) -> None:
    typer.echo(sentence, err=True)
    raise typer.Exit(NO)
