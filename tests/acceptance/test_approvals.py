"""An agent asks, a person hears of it and answers: everything real."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect

from tests.acceptance.test_cli import run, scripted, told
from tests.support.stack import Stack

pytestmark = pytest.mark.process

RULES = """
  - {step: 0, contains: deploy, calls: [
      {tool: request_user_approval, args: {title: "Deploy?", description: "to production"}}]}
  - {step: 1, contains: deploy, calls: [
      {tool: notify_user, args: {title: "Deployed", body: "It is there."}}]}
  - {step: 2, reply: "done"}
"""


async def heard(socket: ClientConnection, kind: str) -> Any:
    """The next frame of a type."""
    async with asyncio.timeout(20):
        while (frame := json.loads(await socket.recv()))["type"] != kind:
            pass
    return frame["payload"]


async def test_a_person_answers_from_the_command_line(stack: Stack, tmp_path: Path) -> None:
    """The bell rings over the WebSocket, the answer goes on with the turn, and is given once."""
    url = stack.url
    model = scripted(tmp_path, RULES)
    await run(url, "agents", "create", "Ada", "--id", "ada", "--model", model)
    assert "Nobody is asked" in (await run(url, "approvals")).stdout
    async with connect(f"{url.replace('http', 'ws')}/api/ws?userId=Tom&agentId=ada") as socket:
        await run(url, "send", "ada", "please deploy", "--sender", "Tom")
        bell = await heard(socket, "notification")
        assert bell["type"] == "approval_request"
        (waiting,) = (await told(url, "approvals", "--status", "pending"))["items"]
        assert waiting["id"] == bell["metadata"]["approvalId"]
        assert "Deploy?" in (await run(url, "approvals", "--agent", "ada")).stdout
        yes = ("approvals", "--answer", waiting["id"], "--approve", "--comment", "go")
        assert "approved" in (await run(url, *yes)).stdout
        said = await heard(socket, "chat:proactive_message")
        assert said["message"].startswith("**Deployed**\n\nIt is there.")
        assert (await heard(socket, "notification"))["title"] == "Deployed"
    await run(url, *yes, code=1)
    assert (await told(url, "approvals", "--status", "pending"))["items"] == []
