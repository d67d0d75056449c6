"""Server-sent events: how frames are written, and how a stream is answered.

Only durable events carry an `id`; whoever reconnects with the last one it saw misses nothing and
sees nothing twice. Comments keep proxies from hanging up.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from fastapi import Request
from starlette.responses import StreamingResponse

from undivided.api.answers import encoded

HEARTBEAT = b": still here\n\n"
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


def frame(event: str, data: Any, event_id: str | None = None) -> bytes:
    """One frame; JSON has no raw line breaks, so that it is one `data` line."""
    head = b"" if event_id is None else b"id: " + event_id.encode() + b"\n"
    return head + b"event: " + event.encode() + b"\ndata: " + encoded(data) + b"\n\n"


def streamed(frames: AsyncIterator[bytes]) -> StreamingResponse:
    """The answer that sends `frames` as they come."""
    return StreamingResponse(frames, media_type="text/event-stream", headers=_HEADERS)


def wants_stream(request: Request) -> bool:
    """Whether the client asks for server-sent events."""
    return "text/event-stream" in request.headers.get("accept", "")
