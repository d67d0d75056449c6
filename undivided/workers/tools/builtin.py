"""The tools that every agent has: to rest, and to keep a note in mind."""

from __future__ import annotations

from typing import Any

from undivided.domain.tooling import Noted, Returned, Suspends, ToolOutcome
from undivided.domain.waits import Sleep
from undivided.workers.tools.tool import EVERYWHERE, Tool, ToolContext, parameters


async def _sleep(_context: ToolContext, args: dict[str, Any]) -> ToolOutcome:
    return Suspends(Sleep(float(args["seconds"])))


async def _update_working_memory(_context: ToolContext, args: dict[str, Any]) -> ToolOutcome:
    key, content = args["key"], args["content"]
    return Returned(f"working memory holds {key!r} now", noted=(Noted(key, content),))


SLEEP = Tool(
    name="sleep",
    description=(
        "Rest for a number of seconds. The turn holds nothing meanwhile; "
        "something new that reaches you can end the rest early."
    ),
    parameters=parameters(
        ("seconds",), seconds={"type": "number", "minimum": 0, "maximum": 366 * 86_400}
    ),
    effect="pure",
    interrupt="wake_only",
    contexts=EVERYWHERE,
    run=_sleep,
)

UPDATE_WORKING_MEMORY = Tool(
    name="update_working_memory",
    description="Keep a note in mind under a key; what stood under the same key is replaced.",
    parameters=parameters(
        ("key", "content"),
        key={"type": "string", "minLength": 1, "maxLength": 128},
        content={"type": "string", "minLength": 1},
    ),
    effect="idempotent",
    interrupt="never",
    contexts=EVERYWHERE,
    run=_update_working_memory,
)

BUILT_IN = (SLEEP, UPDATE_WORKING_MEMORY)
