"""The commands of every day, against a running service."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from tests.support.stack import Stack
from undivided.cli.client import Client
from undivided.cli.main import app
from undivided.cli.stack.spawn import until

WAIT = "30"
REPLY = "This is the offline model: agent {} has no language model behind it"


async def run(url: str, *arguments: str, code: int = 0, said: str | None = None) -> Result:
    """Run a command, and expect an exit code; `said` is what it reads."""
    result = await asyncio.to_thread(
        CliRunner().invoke, app, list(arguments), env={"UNDIVIDED_URL": url}, input=said
    )
    assert result.exit_code == code, result.output
    return result


async def told(url: str, *arguments: str) -> Any:
    """What a command answers as JSON, and nothing else."""
    return json.loads((await run(url, *arguments, "--json")).stdout)


def scripted(folder: Path, rules: str) -> str:
    """A model that answers by these rules."""
    path = folder / "script.yaml"
    path.write_text(f"rules:\n{rules}", "utf-8")
    return f"script:{path}"


async def test_a_first_conversation(stack: Stack) -> None:
    """Make an agent, say something, see what it thinks and what came to it."""
    url = stack.url
    assert "There are no agents yet" in (await run(url, "agents")).stdout
    made = await run(url, "agents", "create", "Ada", "--id", "ada", "--instructions", "Be brief.")
    assert made.stdout == "ada (Ada) is started\n"
    assert (await told(url, "agents", "show", "ada"))["instructions"] == "Be brief."
    sent = await run(url, "send", "ada", "Is the kettle on?", "--wait", WAIT)
    assert sent.stdout.startswith(REPLY.format("ada"))
    assert "ada" in (await run(url, "agents")).stdout
    assert "priority_fifo" in (await run(url, "mind", "ada")).stdout
    assert "Is the kettle on?" in (await run(url, "mailbox", "ada")).stdout
    box = await told(url, "mailbox", "ada")
    assert (box["statusCounts"], box["queued"]) == ({"completed": 1}, [])
    assert [agent["id"] for agent in (await told(url, "agents"))["items"]] == ["ada"]


async def test_what_is_sent_is_what_arrives(stack: Stack) -> None:
    """Type, priority, session, sender and every character."""
    url = stack.url
    await run(url, "agents", "create", "Ada", "--id", "ada")
    options = ("--type", "a2a_message", "--priority", "1", "--session", "ses_x", "--sender", "bob")
    done = await told(url, "send", "ada", "tea — 茶 [b]?", *options, "--wait", WAIT)
    assert (done["outcome"], done["sessionId"]) == ("completed", "ses_x")
    async with Client(url) as client:
        item = await client.get(f"/items/{done['itemId']}")
    assert (item["sourceType"], item["priority"]) == ("a2a_message", 1)
    assert item["payload"]["content"] == "tea — 茶 [b]?"
    assert item["metadata"] == {"senderId": "bob", "senderName": "bob", "senderRole": "agent"}
    accepted = json.loads((await run(url, "send", "ada", "-", "--json", said="read\nin\n")).stdout)
    async with Client(url) as client:
        item = await client.get(f"/items/{accepted['itemId']}")
    assert item["payload"]["content"] == "read\nin\n"


async def test_an_agents_life(stack: Stack) -> None:
    """Paused, it lets things wait; resumed, it takes them up; deleted, it is gone."""
    url = stack.url
    await run(url, "agents", "create", "Ada", "--id", "ada")
    assert "is paused" in (await run(url, "agents", "pause", "ada")).stdout
    late = await run(url, "send", "ada", "first", "--wait", "0.2", code=1)
    assert "no reply within 0.2 s" in late.stderr
    accepted = await told(url, "send", "ada", "second")
    waiting = await run(url, "mailbox", "ada", "--status", "queued")
    assert accepted["itemId"] in waiting.stdout
    assert "agent is paused" in (await run(url, "mind", "ada")).stdout
    assert "2 waiting" in (await run(url, "agents", "resume", "ada")).stdout
    await run(url, "send", "ada", "third", "--wait", WAIT)
    assert (await told(url, "mailbox", "ada"))["statusCounts"] == {"completed": 3}
    then = await told(url, "mailbox", "ada", "--at", accepted["position"])
    assert then["statusCounts"] == {"queued": 2}
    for change, status in (("stop", "stopped"), ("start", "started"), ("delete", "deleted")):
        assert f"is {status}" in (await run(url, "agents", change, "ada")).stdout
    await run(url, "agents", "show", "ada", code=2)


async def test_pages(stack: Stack) -> None:
    """One after the other, by the cursor that the page before named."""
    url = stack.url
    for name in ("a", "b", "c"):
        await run(url, "agents", "create", name, "--id", name)
    page = await told(url, "agents", "--limit", "2")
    assert f"--cursor {page['nextCursor']}" in (await run(url, "agents", "--limit", "2")).stdout
    rest = await told(url, "agents", "--limit", "2", "--cursor", page["nextCursor"])
    assert [agent["id"] for agent in (*page["items"], *rest["items"])] == ["a", "b", "c"]


async def test_what_is_refused_is_told_in_one_sentence(stack: Stack) -> None:
    """On stderr, with an exit code that says whose turn it is."""
    url = stack.url
    await run(url, "agents", "create", "Ada", "--id", "ada")
    for code, arguments in (
        (1, ("agents", "create", "Ada", "--id", "ada")),
        (2, ("agents", "create", "Ada", "--id", "a b")),
        (2, ("agents", "create", "Ada", "--instructions", "@/nowhere")),
        (2, ("agents", "--json", "show", "ada")),
        (2, ("agents", "show", "nobody")),
        (2, ("send", "nobody", "hello")),
        (2, ("send", "ada", "hello", "--type", "nonsense")),
        (2, ("chat", "nobody")),
        (2, ("mind", "ada", "--at", "yesterday")),
        (2, ("mailbox", "ada", "--status", "nonsense")),
    ):
        result = await run(url, *arguments, code=code)
        assert result.stdout == ""
        assert len(result.stderr.strip().splitlines()) == 1, result.stderr
    away = await run("http://127.0.0.1:1", "agents", code=3)
    assert "start it with `undivided up`" in away.stderr


async def test_a_reply_that_does_not_come_is_a_no(stack: Stack, tmp_path: Path) -> None:
    """Whether waited for or piped."""
    model = scripted(tmp_path, "  - {error: refused}\n")
    await run(stack.url, "agents", "create", "Ada", "--id", "ada", "--model", model)
    failed = await run(stack.url, "send", "ada", "hello", "--wait", WAIT, code=1)
    assert "no reply: " in failed.stderr
    assert "no reply: " in (await run(stack.url, "chat", "ada", code=1, said="hello\n")).stderr


async def test_each_piped_line_is_a_message(stack: Stack) -> None:
    """Only replies come out, in order; empty lines are none."""
    await run(stack.url, "agents", "create", "Ada", "--id", "ada")
    replies = (await run(stack.url, "chat", "ada", said="one\n\ntwo")).stdout.splitlines()
    assert [reply.rpartition(": ")[2] for reply in replies] == ['"one".', '"two".']


class Terminal:
    """`undivided chat` on a terminal, with somebody at the keys."""

    def __init__(self, url: str, agent: str) -> None:
        self._main, inner = pty.openpty()
        os.set_blocking(self._main, False)
        environ = {**os.environ, "UNDIVIDED_URL": url, "TERM": "xterm", "COLUMNS": "80"}
        command = [sys.executable, "-m", "undivided", "chat", agent]
        self.process = subprocess.Popen(
            command,
            env=environ,
            stdin=inner,
            stdout=inner,
            stderr=inner,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
        )  # a shell's background jobs ignore Ctrl-C, and their children would too
        os.close(inner)
        self._read = ""

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self._main, text.encode())

    async def see(self, text: str) -> str:
        """Wait for a text; answers everything since the last one that was seen."""
        assert await until(lambda: text in self._all(), 30), self._read
        before, _, self._read = self._read.partition(text)
        return before

    async def closed(self) -> int:
        """The exit code, at the end."""
        assert await until(lambda: self.process.poll() is not None, 30)
        return self.process.wait()

    def end(self) -> None:
        """Leave nothing behind."""
        self.process.kill()
        self.process.wait()
        os.close(self._main)

    def _all(self) -> str:
        with suppress(OSError):
            self._read += os.read(self._main, 65_536).decode("utf-8", "replace")
        return self._read


@pytest.fixture
def terminals() -> Iterator[list[Terminal]]:
    opened: list[Terminal] = []
    yield opened
    for terminal in opened:
        terminal.end()


async def test_a_reply_grows_on_the_terminal(
    stack: Stack, tmp_path: Path, terminals: list[Terminal]
) -> None:
    """Who speaks, the tools in between, and a way out."""
    rules = (
        "  - {step: 0, reply: a moment, calls: [{tool: test_return, args: {value: 7}}]}\n"
        "  - {reply: it is seven, chunks: 4}\n"
    )
    model = scripted(tmp_path, rules)
    await run(stack.url, "agents", "create", "Ada", "--id", "ada", "--model", model)
    terminals.append(terminal := Terminal(stack.url, "ada"))
    await terminal.see("you> ")
    terminal.type("which?\n")
    await terminal.see("Ada> ")
    await terminal.see("test_return")
    await terminal.see("it is seven")
    await terminal.see("you> ")
    terminal.type("\x04")
    assert await terminal.closed() == 0


async def test_a_reply_can_be_stopped(
    stack: Stack, tmp_path: Path, terminals: list[Terminal]
) -> None:
    """The agent is asked to stop, and the chat goes on."""
    model = scripted(tmp_path, "  - {contains: long, delay: 600}\n  - {reply: at once}\n")
    await run(stack.url, "agents", "create", "Ada", "--id", "ada", "--model", model)
    terminals.append(terminal := Terminal(stack.url, "ada"))
    await terminal.see("you> ")
    terminal.type("a long story\n")
    async with Client(stack.url) as client:
        async with asyncio.timeout(30):
            while (await client.get("/agents/ada/mind"))["attentionState"] != "focused":
                await asyncio.sleep(0.02)
    terminal.process.send_signal(signal.SIGINT)
    await terminal.see("[asked to stop]")
    await terminal.see("you> ")
    terminal.type("now?\n")
    await terminal.see("at once")
    box = await told(stack.url, "mailbox", "ada")
    assert box["statusCounts"] == {"cancelled": 1, "completed": 1}
