"""Running one tool call so that it always ends in an outcome the model can read.

A tool may raise, hang or flood; the turn must not. Only cancellation passes through.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from undivided.domain.tooling import Acts, Raised, Returned, Suspends, ToolOutcome
from undivided.workers.tools.arguments import first_mistake
from undivided.workers.tools.tool import Tool, ToolContext

RESULT_LIMIT = 16 * 1024 * 1024
"""The most bytes (UTF-8) of one result that are kept; the rest is cut off, and said so."""


async def run_tool(
    tool: Tool, context: ToolContext, args: dict[str, Any], timeout_s: float
) -> ToolOutcome:
    """The outcome of calling `tool`; failures and timeouts are outcomes too."""
    mistake = first_mistake(args, tool.parameters)
    if mistake:
        return Raised(f"{tool.name} was not run: {mistake}")
    timeout = asyncio.timeout(timeout_s)
    try:
        async with timeout:
            outcome = await tool.run(context, args)
    except Exception as error:  # noqa: BLE001 - whatever a tool raises, the model shall read it
        if timeout.expired():
            return Raised(f"{tool.name} did not end within {timeout_s:g} s and was stopped")
        outcome = Raised(f"{tool.name} failed: {type(error).__name__}: {error}")
    return _bounded(outcome)


def _bounded(outcome: ToolOutcome) -> ToolOutcome:
    match outcome:
        case Returned():
            return msgspec.structs.replace(outcome, content=cut(outcome.content, RESULT_LIMIT))
        case Raised():
            return Raised(cut(outcome.message, RESULT_LIMIT))
        case Suspends() | Acts():
            return outcome


def cut(text: str, limit: int) -> str:
    """`text` if it fits in `limit` bytes of UTF-8; else its beginning and how much is missing."""
    if len(text) * 4 <= limit:
        return text
    raw = text.encode("utf-8", "surrogatepass")
    if len(raw) <= limit:
        return text
    end = limit
    while raw[end] & 0xC0 == 0x80:
        end -= 1
    kept = raw[:end].decode("utf-8", "surrogatepass")
    return f"{kept}\n[cut off: {len(raw) - end} of {len(raw)} bytes are missing; limit {limit}]"
