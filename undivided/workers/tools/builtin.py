"""The tool that every agent has whatever else it has: to rest."""

from __future__ import annotations

from typing import Any

from undivided.domain.tooling import Suspends, ToolOutcome
from undivided.domain.waits import Sleep
from undivided.workers.tools.tool import EVERYWHERE, Tool, ToolContext, parameters


async def _sleep(_context: ToolContext, args: dict[str, Any]) -> ToolOutcome:
    return Suspends(Sleep(float(args["seconds"])))


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

BUILT_IN = (SLEEP,)
