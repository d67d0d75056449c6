"""Reading server-sent events in tests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
from msgspec import Struct


class Frame(Struct, frozen=True):
    """One frame of a stream."""

    event: str
    data: Any
    id: str | None


async def frames_of(answer: httpx.Response) -> AsyncIterator[Frame]:
    """The frames of a stream; comments are passed over."""
    assert answer.status_code == 200
    fields: dict[str, str] = {}
    async for line in answer.aiter_lines():
        if line.startswith(":"):
            continue
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif "event" in fields:
            yield Frame(fields["event"], json.loads(fields["data"]), fields.get("id"))
            fields = {}


async def next_frame(frames: AsyncIterator[Frame], within_s: float = 10) -> Frame:
    """The next frame, before time is up."""
    async with asyncio.timeout(within_s):
        return await anext(frames)
