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
from undivided.cli.chat.talk import Said, Talk
from undivided.cli.client import (
    NO,
    OVER,
    Client,
    Problem,
    ask,
    connect,
    exit_code,
    failures_told,
    finish,
    route,
)
from undivided.cli.options import TALK, AgentId, AsJson, Url
from undivided.cli.views.cells import one_line, plain
from undivided.domain.stimuli import REGISTRY

PATIENCE_S = 30.0
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
    app.command(rich_help_panel=TALK, epilog=f"Types there are: {TYPES}.")(send)
    app.command(rich_help_panel=TALK)(chat)


def send(
    agent: AgentId,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What it says; - reads it from "
                                        "standard input.")],
    type_: Annotated[
        str, typer.Option("--type", help="What kind of thing reaches the agent; see below.")
    ] = "human_chat",
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
        _end(Said(done), "" if as_json else _reply(done))
    elif wait:
        _no(f"no reply within {wait:g} s; {accepted['itemId']} stays in the mailbox of {agent}")
    elif not as_json:
        typer.echo(f"queued {accepted['itemId']}")


def sender_of(type_: str, sender: str | None) -> dict[str, str]:
    """Who sends a stimulus of this type from the command line: a person, mostly."""
    kind = REGISTRY.get(type_)
    machine = {"system": "system", "orchestration": "system"}.get(kind.category if kind else "")
    role = machine or ("agent" if type_ in {"a2a_message", "text"} else "user")
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
    typed = sys.stdin.isatty()
    if typed:
        _greet(known)
    with failures_told(), asyncio.Runner() as runner:
        talk = Talk(connect(url, PATIENCE_S), agent, fixed, _write, _note)
        well = [_exchange(runner, talk, line, typed) for line in _lines(known["name"], typed)]
    if not typed and not all(well):
        raise typer.Exit(NO)


def _exchange(runner: asyncio.Runner, talk: Talk, line: str, typed: bool) -> bool:
    """One message and its reply; what goes wrong with it ends a chat only if nobody types."""
    try:
        said = runner.run(talk.say(line))
    except KeyboardInterrupt:
        if not typed:
            raise
        stopped = runner.run(talk.stop())
        _note("stopped" if stopped else "not waited for; it stays in the mailbox")
        return False
    except Problem as error:
        if not typed:
            raise
        typer.echo(one_line(str(error)), err=True)
        return exit_code(error) == 0
    typer.echo("")
    if not said.well:
        typer.echo(_outcome(said.done), err=True)
    return said.well


def _lines(name: str, typed: bool) -> Iterator[str]:
    if not typed:
        yield from (line for raw in sys.stdin if (line := raw.rstrip("\r\n")).strip())
        return
    with suppress(ImportError):
        import readline  # noqa: F401 it gives input() a history and arrow keys
    while True:
        try:
            line = input("you> ")
        except (EOFError, KeyboardInterrupt):
            typer.echo("")
            return
        if line.strip():
            typer.secho(f"{one_line(name)}> ", bold=True, nl=False)
            yield line


def _greet(agent: dict[str, Any]) -> None:
    about = Text.assemble((one_line(agent["name"]), "bold"), f" ({agent['id']}) listens. ")
    terminal().print(about.append("Ctrl-C stops a reply, Ctrl-D leaves.", style="dim"))
    if agent["status"] != "started":
        _note(f"{agent['id']} is {agent['status']}: undivided agents resume {agent['id']}")


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _note(line: str) -> None:
    if sys.stdout.isatty():
        terminal().print(Text(f"\n[{line}]", style="dim"))


def _reply(done: dict[str, Any]) -> str:
    return plain(done.get("reply") or "")


def _end(said: Said, reply: str) -> None:
    if reply:
        typer.echo(reply)
    if not said.well:
        _no(_outcome(said.done))


def _outcome(done: dict[str, Any]) -> str:
    status, outcome = done.get("status"), done.get("outcome")
    how = outcome if outcome == status else f"{status} ({outcome})"
    return one_line(f"no reply: {done['itemId']} ended {how}")


def _no(sentence: str) -> None:
    typer.echo(sentence, err=True)
    raise typer.Exit(NO)
