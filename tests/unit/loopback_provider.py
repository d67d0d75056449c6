"""A provider on loopback that speaks OpenAI's chat completions, and misbehaves when told to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from msgspec import Struct

Delta = dict[str, Any]


class Says(Struct, frozen=True):
    """A stream of deltas; `finish` ends it properly, None leaves it cut off.

    With `torn` the connection is dropped in the middle of the stream; with `hangs` nothing
    more comes and the connection stays open.
    """

    deltas: tuple[Delta, ...]
    finish: str | None = "stop"
    torn: bool = False
    hangs: bool = False


class Fails(Struct, frozen=True):
    """An HTTP error with a body."""

    status: int
    body: dict[str, Any] | str = {}


class Provider:
    """Answers each request with the next of its `answers`, the last one again and again.

    `left` is set when whoever waited for a hanging answer has gone.
    """

    def __init__(self, *answers: Says | Fails) -> None:
        self.answers = list(answers)
        self.asked: list[dict[str, Any]] = []
        self.url = ""
        self.left = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection: one request after the other."""
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = next(
                    int(line.split(b":")[1])
                    for line in head.lower().split(b"\r\n")
                    if line.startswith(b"content-length:")
                )
                self.asked.append(json.loads(await reader.readexactly(length)))
                answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
                if not await self._answer(answer, reader, writer):
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()

    async def _answer(
        self, answer: Says | Fails, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        if isinstance(answer, Fails):
            body = json.dumps(answer.body).encode()
            writer.write(_head(answer.status, f"content-length: {len(body)}") + body)
            return True
        writer.write(_head(200, "transfer-encoding: chunked", "text/event-stream"))
        for delta in answer.deltas:
            _event(writer, _chunk({"role": "assistant", **delta}))
        await writer.drain()
        if answer.hangs:
            await reader.read()
            self.left.set()
        if answer.torn or answer.hangs:
            return False
        if answer.finish:
            _event(writer, _chunk({}, answer.finish))
            _event(writer, _chunk({}, answer.finish) | {"choices": [], "usage": USAGE})
            _event(writer, "[DONE]")
        writer.write(b"0\r\n\r\n")
        return True


USAGE = {
    "prompt_tokens": 100,
    "completion_tokens": 20,
    "total_tokens": 120,
    "prompt_tokens_details": {"cached_tokens": 40},
}


@asynccontextmanager
async def provider(*answers: Says | Fails) -> AsyncIterator[Provider]:
    """A running provider; its `url` is what a profile's `base_url` says."""
    serving = Provider(*answers)
    server = await asyncio.start_server(serving.serve, "127.0.0.1", 0)
    serving.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    try:
        yield serving
    finally:
        server.close()


def text(*parts: str) -> tuple[Delta, ...]:
    """Deltas of plain text."""
    return tuple({"content": part} for part in parts)


def tool_call(index: int, tool: str, *arguments: str) -> tuple[Delta, ...]:
    """Deltas of one tool call, its arguments in parts; all of them have the same id."""
    head = {"index": index, "id": "same", "type": "function"}
    first = {**head, "function": {"name": tool, "arguments": arguments[0]}}
    rest = ({"index": index, "function": {"arguments": part}} for part in arguments[1:])
    return tuple({"tool_calls": [part]} for part in (first, *rest))


def _head(status: int, *lines: str) -> bytes:
    length, kind = (*lines, "application/json")[:2]
    return f"HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\n{length}\r\n\r\n".encode()


def _chunk(delta: Delta, finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    kind = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "loop-1"}
    return {**kind, "choices": [choice]}


def _event(writer: asyncio.StreamWriter, data: dict[str, Any] | str) -> None:
    content = data if isinstance(data, str) else json.dumps(data)
    event = f"data: {content}\n\n".encode()
    writer.write(f"{len(event):x}\r\n".encode() + event + b"\r\n")
