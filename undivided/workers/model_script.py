"""Script models: answering as a script says, after its delay and in its pieces."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from undivided.domain.dialogue import ModelReply, ModelRequest
from undivided.domain.errors import ModelFailed
from undivided.domain.script import Script, choose, deltas


async def answer_from(
    script: Script, request: ModelRequest, on_delta: Callable[[str], None]
) -> ModelReply:
    """What the script says to `request`, after its delay and in its chunks.

    Raises:
        ModelFailed: the script says so.
    """
    answer = choose(script, request)
    await asyncio.sleep(answer.delay.total_seconds())
    if answer.error:
        raise ModelFailed(answer.error, f"scripted by {answer.origin}")
    await stream(answer.text, answer.chunks, on_delta)
    return ModelReply(answer.text, answer.calls, answer.usage, f"script:{script.name}")


async def stream(text: str, chunks: int, on_delta: Callable[[str], None]) -> None:
    """Hand `text` on in `chunks` parts, with room for others and for a cancel between them."""
    for delta in deltas(text, chunks):
        on_delta(delta)
        await asyncio.sleep(0)
