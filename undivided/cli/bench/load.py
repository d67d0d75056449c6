"""Load over HTTP from one event loop: connections that ask again as soon as they are answered.

A full HTTP client costs more than the servers that it is to measure. This one speaks just
enough of HTTP/1.1 for answers that name their length.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

_LENGTH = b"content-length:"


def get(path: str) -> bytes:
    """A GET request."""
    return f"GET {path} HTTP/1.1\r\nHost: bench\r\n\r\n".encode()


def post(path: str, body: bytes) -> bytes:
    """A POST request with a JSON body."""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def requests_per_second(port: int, requests: Sequence[bytes], seconds: float) -> float:
    """How many requests are answered per second, with one client for each of `requests`."""
    until = time.perf_counter() + seconds
    counts = await asyncio.gather(*(_client(port, request, until) for request in requests))
    return sum(counts) / seconds


async def _client(port: int, request: bytes, until: float) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    answered = 0
    try:
        while time.perf_counter() < until:
            writer.write(request)
            await _answer(reader)
            answered += 1
    finally:
        writer.close()
    return answered


async def _answer(reader: asyncio.StreamReader) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    status = head[9:12]
    if not status.startswith(b"2"):
        raise RuntimeError(f"the server answered {head[:200]!r}")
    lowered = head.lower()
    begin = lowered.index(_LENGTH) + len(_LENGTH)
    await reader.readexactly(int(lowered[begin : lowered.index(b"\r", begin)]))
