"""What a tool is: a typed function with a schema, an effect and the contexts that may see it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

from msgspec import Struct

from undivided.domain.dialogue import ToolSpec
from undivided.domain.recorded import Meta
from undivided.domain.scenarios import SCENARIOS
from undivided.domain.tooling import Effect, InterruptPolicy, ToolOutcome

EVERYWHERE = frozenset(SCENARIOS)
"""The contexts of a tool that any model request may offer."""


class ToolContext(Struct, frozen=True):
    """Who calls a tool, in which call; `idempotency_key` is the same when a call is re-run.

    `meta` is cause and story of whatever the tool records by itself.
    """

    agent_id: str
    session_id: str
    turn_id: str
    call_id: str
    idempotency_key: str
    now: datetime
    meta: Meta = Meta()


Run = Callable[[ToolContext, dict[str, Any]], Awaitable[ToolOutcome]]


class Tool(Struct, frozen=True):
    """Something that an agent can do besides answering.

    `parameters` is the JSON schema of its arguments; `effect` says what a re-run after a crash
    would do; `interrupt` what may end it early; `contexts` the scenarios that may see it.
    """

    name: str
    description: str
    parameters: dict[str, Any]
    effect: Effect
    interrupt: InterruptPolicy
    contexts: frozenset[str]
    run: Run

    def spec(self) -> ToolSpec:
        """The tool as a model sees it."""
        return ToolSpec(self.name, self.description, self.parameters)


def parameters(required: tuple[str, ...], **properties: dict[str, Any]) -> dict[str, Any]:
    """The JSON schema of an object with exactly these properties."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }
