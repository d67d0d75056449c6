"""The commands of the README, as a reader would type them, against a fresh `undivided up`."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from shutil import which
from typing import Any

import pytest

from tests.process.running import Running

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
TOLD = {"DATABASE_URL", "DATABASE_DIRECT_URL", "DATABASE_OWNER_URL", "REDIS_URL", "UNDIVIDED_URL"}
SHELL = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def commands_of(text: str) -> list[str]:
    """What stands behind a prompt in ```console blocks, in order; a backslash goes on."""
    blocks = "\n".join(block.replace("\\\n", " ") for block in BLOCK.findall(text))
    return [line.removeprefix("$ ") for line in blocks.splitlines() if line.startswith("$ ")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that looks like a clone: the command, the documents, and the data folder."""
    binaries = tmp_path / ".venv" / "bin"
    binaries.mkdir(parents=True)
    script = binaries / "undivided"
    script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m undivided "$@"\n')
    script.chmod(0o755)
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    (tmp_path / ".undivided").symlink_to(tmp_path / "data")
    return tmp_path


@pytest.fixture
def up(folder: Path) -> Iterator[Running]:
    running = Running(folder)
    yield running
    running.close()


async def typed(command: str, folder: Path) -> tuple[int, str, str]:
    """Exit code and what was said, by a shell that knows nothing but the folder it is in."""
    environ = {name: value for name, value in os.environ.items() if name not in TOLD}
    process = await asyncio.create_subprocess_shell(
        command,
        cwd=folder,
        env={**environ, "PYTHONPATH": str(ROOT)},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, errors = await asyncio.wait_for(process.communicate(), 120)
    return process.returncode or 0, out.decode(), errors.decode()


def test_prompts_are_commands_and_nothing_else_is() -> None:
    """Output and other blocks are for reading."""
    text = "```sh\n$ no\n```\n```console\n$ one \\\n  --more\nsaid\n```\n```console\n$ two\n```\n"
    assert [shlex.split(command) for command in commands_of(text)] == [["one", "--more"], ["two"]]


@pytest.mark.process
@pytest.mark.skipif(which("curl") is None, reason="the README asks with curl")
async def test_every_request_is_answered(up: Running, folder: Path) -> None:
    """The block of requests as it stands, on the address of this stack; a refusal fails."""
    (block,) = [one for one in SHELL.findall(README.read_text("utf-8")) if "curl" in one]
    up.start("--workers", "1")
    await up.ready()
    here = up.url.removeprefix("http://")
    asked = block.replace("localhost:8420", here).replace("curl ", "curl --fail-with-body -sS ")
    code, said, errors = await typed(f"set -e\n{asked}", folder)
    assert code == 0, f"{asked}: exit {code}\n{said}\n{errors}"
    told: list[dict[str, Any]] = []
    while said.strip():
        one, end = json.JSONDecoder().raw_decode(said := said.lstrip())
        told, said = [*told, one], said[end:]
    created, replied, mind = told
    assert created["id"] == "grace"
    assert replied["reply"].endswith('"hello".')
    assert replied["itemId"] in {one["mailboxItemId"] for one in mind["recentDecisions"]}


@pytest.mark.process
async def test_every_command_does_what_a_reader_hopes(up: Running, folder: Path) -> None:
    """In order; each one says something and none fails."""
    commands = commands_of(README.read_text("utf-8"))
    assert commands, "README.md shows no command in a ```console block"
    up.start("--workers", "1")
    await up.ready()
    for command in commands:
        code, said, errors = await typed(command, folder)
        assert code == 0, f"{command}: exit {code}\n{said}\n{errors}"
        assert said.strip(), f"{command} says nothing"
        assert "Traceback" not in errors
