"""The tools by which an agent hears of something later: a moment, the end of a command."""

from __future__ import annotations

from typing import Any

from undivided.domain.callbacks import (
    DEFAULT_LIMIT_S,
    LONGEST_S,
    CancelWakeup,
    RunInBackground,
    ScheduleWakeup,
)
from undivided.domain.scenarios import DELIBERATION, JUDGE
from undivided.domain.tooling import Acts, ToolOutcome
from undivided.workers.tools.tool import EVERYWHERE, Tool, ToolContext, parameters

_AT_WORK = EVERYWHERE - {JUDGE, DELIBERATION}
_SECONDS = {"type": "number", "minimum": 0, "maximum": LONGEST_S}


async def _schedule(_context: ToolContext, args: dict[str, Any]) -> ToolOutcome:
    return Acts(
        ScheduleWakeup(
            in_s=args.get("in_seconds"),
            at=args.get("at"),
            recurring_s=args.get("recurring_seconds"),
            note=args.get("note", ""),
            delivery=args.get("delivery", "mailbox"),
            misfire=args.get("misfire", "once"),
        )
    )


async def _cancel(_context: ToolContext, args: dict[str, Any]) -> ToolOutcome:
    return Acts(CancelWakeup(args["wakeup_id"]))


async def _background(_context: ToolContext, args: dict[str, Any]) -> ToolOutcome:
    return Acts(
        RunInBackground(args["command"], float(args.get("timeout_seconds", DEFAULT_LIMIT_S)))
    )


SCHEDULE_WAKEUP = Tool(
    name="schedule_wakeup",
    description=(
        "Wake yourself later: in_seconds from now or at an ISO 8601 time, once or then every "
        "recurring_seconds. The note says what it is for. It reaches you as a new item, or with "
        "delivery in_session in this conversation. misfire says what times bring that were missed: "
        "one item for all of them (once), nothing (skip), or one each."
    ),
    parameters=parameters(
        (),
        in_seconds=_SECONDS,
        at={"type": "string", "minLength": 1, "maxLength": 64},
        recurring_seconds=_SECONDS,
        note={"type": "string", "maxLength": 4000},
        delivery={"type": "string", "enum": ["mailbox", "in_session"]},
        misfire={"type": "string", "enum": ["skip", "once", "all"]},
    ),
    effect="pure",
    interrupt="never",
    contexts=_AT_WORK,
    run=_schedule,
)

CANCEL_WAKEUP = Tool(
    name="cancel_wakeup",
    description="Take back a wakeup that you scheduled.",
    parameters=parameters(
        ("wakeup_id",), wakeup_id={"type": "string", "minLength": 1, "maxLength": 128}
    ),
    effect="pure",
    interrupt="never",
    contexts=EVERYWHERE - {JUDGE},
    run=_cancel,
)

BACKGROUND_EXEC = Tool(
    name="background_exec",
    description=(
        "Run a shell command in the background, for timeout_seconds at most. You do not wait for "
        "it: its exit code and the last of its output reach you in this conversation."
    ),
    parameters=parameters(
        ("command",),
        command={"type": "string", "minLength": 1, "maxLength": 100_000},
        timeout_seconds={"type": "number", "exclusiveMinimum": 0, "maximum": 86_400},
    ),
    effect="pure",
    interrupt="never",
    contexts=_AT_WORK,
    run=_background,
)

TIME = (SCHEDULE_WAKEUP, CANCEL_WAKEUP)
