"""One message and its reply, shown while it is written."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from undivided.cli.chat.spoken import Spoken
from undivided.cli.client import OVER, Client, Problem, route
from undivided.cli.views.cells import one_line, plain

_ARGUMENTS = 120


class Said(Struct, frozen=True):
    """How a message ended: `done` is what the service told at the end."""

    done: dict[str, Any]

    @property
    def well(self) -> bool:
        """Whether the agent completed its turn."""
        return self.done.get("outcome") == "completed"


class Talk:
    """A conversation with one agent over one connection.

    `write` gets the reply piece by piece, `note` a line about each tool that is called.
    """

    def __init__(
        self,
        client: Client,
        agent_id: str,
        fixed: dict[str, Any],
        write: Callable[[str], None],
        note: Callable[[str], None],
    ) -> None:
        self._client, self._agent_id, self._fixed = client, agent_id, fixed
        self._write, self._note = write, note
        self._session_id: str | None = None

    async def say(self, text: str) -> Said:
        """Send a message and show the reply as it comes."""
        spoken = Spoken()
        path, body = route("agents", self._agent_id, "messages"), {**self._fixed, "text": text}
        async for event in self._client.conversation(path, body, secrets.token_hex(16)):
            data = json.loads(event.data)
            if more := spoken.take(event.event, data, event.id is not None):
                self._write(plain(more))
            if event.event == "session_start":
                self._session_id = data["sessionId"]
            elif event.event == "tool_start":
                self._note(_called(data))
            elif event.event in OVER:
                return Said(data)
        raise AssertionError("a conversation ends with its end")

    async def stop(self) -> bool:
        """Ask the agent to stop what it is saying; false if it had not begun."""
        if self._session_id is None:
            return False
        try:
            await self._client.post(route("sessions", self._session_id, "stop"), {})
        except Problem:
            return False
        return True


def _called(data: dict[str, Any]) -> str:
    arguments = json.dumps(data["args"], ensure_ascii=False)
    short = arguments if len(arguments) <= _ARGUMENTS else f"{arguments[:_ARGUMENTS]} …"
    return one_line(f"{data['tool']} {short}")
