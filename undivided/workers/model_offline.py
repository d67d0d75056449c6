"""The built-in model that needs no network: it says what it is and repeats what it was told."""

from __future__ import annotations

import json
from collections.abc import Callable

from undivided.domain.dialogue import ModelReply, ModelRequest, Usage
from undivided.domain.script import completed
from undivided.workers.model_script import stream

_ECHOED = 2_000
_DELTA = 24


async def answer_offline(request: ModelRequest, on_delta: Callable[[str], None]) -> ModelReply:
    """The same reply to the same request, always, and never a tool call."""
    text = completed(_reply(request), request)
    await stream(text, -(-len(text) // _DELTA), on_delta)
    return ModelReply(text, usage=Usage(requests=1), model="offline")


def _reply(request: ModelRequest) -> str:
    told = request.newest_input.strip()
    if not told:
        return "This is the offline model. Nothing was said to it, so it has nothing to repeat."
    rest = len(told) - _ECHOED
    shown = json.dumps(told[:_ECHOED], ensure_ascii=False)
    return (
        f"This is the offline model: agent {request.agent_id} has no language model behind it, "
        f"so it only repeats what it was told: {shown}"
        + (f" and {rest} more characters." if rest > 0 else ".")
    )
