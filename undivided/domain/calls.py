"""Names for the tool calls of a model response: the same in every worker, after any crash."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import Any

from undivided.domain.dialogue import ModelRequest, ToolCall


def call_id(request: ModelRequest, index: int) -> str:
    """The id of the tool call at `index` of the response to `request`.

    A provider's own ids are not used: some servers repeat them within a session. This one is
    made of turn, step and index, and is of the letters and length that every provider takes.
    """
    place = f"{request.turn_id}\0{request.step}\0{index}"
    return "call_" + sha256(place.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def named_calls(
    request: ModelRequest, wishes: Iterable[tuple[str, dict[str, Any]]]
) -> tuple[ToolCall, ...]:
    """The tool calls of one response, in order, from its (tool, arguments) pairs."""
    return tuple(
        ToolCall(call_id(request, index), tool, args) for index, (tool, args) in enumerate(wishes)
    )
