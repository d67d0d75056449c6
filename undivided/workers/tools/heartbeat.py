"""The tool by which an agent sets its own pace."""

from __future__ import annotations

from typing import Any

from undivided.domain.errors import Invalid
from undivided.domain.interval import wanted_interval
from undivided.domain.scenarios import JUDGE
from undivided.domain.tooling import Acts, Raised, ToolOutcome
from undivided.workers.tools.tool import EVERYWHERE, Tool, ToolContext, parameters


async def _set_heartbeat_interval(_context: ToolContext, args: dict[str, Any]) -> ToolOutcome:
    try:
        return Acts(wanted_interval(args.get("interval_minutes"), args.get("interval_ms")))
    except Invalid as error:
        return Raised(str(error))


SET_HEARTBEAT_INTERVAL = Tool(
    name="set_heartbeat_interval",
    description=(
        "Set how often you look around by yourself: every so many minutes (or milliseconds), from "
        "5 minutes to 24 hours. The result is JSON: interval_ms, interval_minutes and whether "
        "what you gave was clamped."
    ),
    parameters=parameters((), interval_minutes={"type": "number"}, interval_ms={"type": "number"}),
    effect="pure",
    interrupt="never",
    contexts=EVERYWHERE - {JUDGE},
    run=_set_heartbeat_interval,
)

HEARTBEATS = (SET_HEARTBEAT_INTERVAL,)
