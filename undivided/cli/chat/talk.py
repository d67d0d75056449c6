"""One message and what becomes of it, told while it happens."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from undivided.cli.client import OVER, Client, Problem, route

Heard = Callable[[str, dict[str, Any], bool], None]
"""Called with each event: its name, its data, whether it is recorded."""


class Said(Struct, frozen=True):
    """How a message ended; `told` is what the service said at the end."""

    told: dict[str, Any]

    @property
    def well(self) -> bool:
        """Whether the agent completed its turn."""
        return self.told.get("outcome") == "completed"

    @property
    def reply(self) -> str:
        """What the agent answered; empty if it said nothing."""
        return self.told.get("reply") or ""


class Talk:
    """A conversation with one agent; `fixed` goes with every message."""

    def __init__(self, client: Client, agent_id: str, fixed: dict[str, Any]) -> None:
        self._client, self._agent_id, self._fixed = client, agent_id, fixed
        self._began: dict[str, Any] = {}
        self._sent: tuple[str, dict[str, Any], str] = ("", {}, "")

    async def say(self, text: str, heard: Heard) -> Said:
        """Send a message and follow it to its end."""
        self._began = {}
        path, body = route("agents", self._agent_id, "messages"), {**self._fixed, "text": text}
        self._sent = path, body, secrets.token_hex(16)
        async for event in self._client.conversation(*self._sent):
            data = json.loads(event.data)
            heard(event.event, data, event.id is not None)
            if event.event == "session_start":
                self._began = data
            elif event.event in OVER:
                return Said(data)
        raise AssertionError("a conversation ends with its end")

    async def stop(self) -> str:
        """Ask the agent to stop what it is saying; answers what then is true of the message.

        Where nothing was heard of the message yet, it is sent once more under its key, which
        tells which item it has become and sends nothing twice.
        """
        try:
            if not self._began:
                path, body, key = self._sent
                self._began = await self._client.post(path, body, key)
            item = await self._client.get(route("items", self._began["itemId"]))
            if item["status"] == "processing":
                path = route("sessions", item.get("sessionId") or self._began["sessionId"], "stop")
                await self._client.post(path, {})
                return "asked to stop"
        except Problem as error:
            return str(error)
        return f"not waited for; {item['id']} is {item['status']}"
