"""Short ways to call the API in tests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import httpx


class Api:
    """Calls that say which status they expect and answer the body."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self.client = client

    async def get(self, path: str, status: int = 200, **query: Any) -> Any:
        """GET `path`."""
        answer = await self.client.get(f"/api{path}", params=query or None)
        assert answer.status_code == status, answer.text
        return answer.json()

    async def post(
        self, path: str, body: Any = None, status: int = 202, key: str | None = None
    ) -> Any:
        """POST `body` as JSON; bytes are sent as they are."""
        headers = {"idempotency-key": key} if key else {}
        content = body if isinstance(body, bytes) else json.dumps(body).encode("ascii")
        sent = None if body is None else content
        answer = await self.client.post(f"/api{path}", headers=headers, content=sent)
        assert answer.status_code == status, answer.text
        return answer.json()

    async def delete(self, path: str, status: int = 200) -> Any:
        """DELETE `path`."""
        answer = await self.client.delete(f"/api{path}")
        assert answer.status_code == status, answer.text
        return answer.json()

    async def until(self, path: str, true: Callable[[Any], bool], within_s: float = 10) -> Any:
        """GET `path` until the answer is as wanted."""
        async with asyncio.timeout(within_s):
            while not true(body := await self.get(path)):
                await asyncio.sleep(0.01)
        return body

    def stream(
        self, method: str, path: str, **more: Any
    ) -> AbstractAsyncContextManager[httpx.Response]:
        """A stream of server-sent events."""
        headers = {"accept": "text/event-stream", **more.pop("headers", {})}
        return self.client.stream(method, f"/api{path}", headers=headers, **more)

    async def agent(self, agent_id: str = "ada", **more: Any) -> Any:
        """A new agent."""
        return await self.post("/agents", {"id": agent_id, "name": agent_id, **more}, 201)

    async def chat(self, agent_id: str, content: str, **more: Any) -> Any:
        """A chat message in an agent's mailbox."""
        body = {"sourceType": "human_chat", "payload": {"content": content}, **more}
        return await self.post(f"/agents/{agent_id}/mailbox", body)
