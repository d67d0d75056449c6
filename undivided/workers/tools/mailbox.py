"""The tools by which an agent manages its own mailbox, and ends a deliberation about it."""

from __future__ import annotations

from typing import Any

from undivided.domain.mailbox_tools import CheckMailbox, DeferItem, DropItem, PrioritizeItem
from undivided.domain.planning import CompleteDeliberation
from undivided.domain.scenarios import DELIBERATION, JUDGE
from undivided.domain.tooling import Acts, ToolOutcome
from undivided.workers.tools.tool import EVERYWHERE, Tool, ToolContext, parameters

_ID = {"type": "string", "minLength": 1, "maxLength": 128}
_IDS = {"type": "array", "items": {"type": "string"}}
_TEXT = {"type": "string"}
_REASON = {"type": "string", "minLength": 1}
_LONGEST_MIN = 366 * 1440
_MEMORY = {
    "type": "object",
    "properties": {
        "type": {"type": "string", "enum": ["working", "longterm"]},
        "key": {"type": "string", "minLength": 1, "maxLength": 128},
        "content": {"type": "string", "minLength": 1},
    },
    "required": ["key", "content"],
    "additionalProperties": False,
}


async def _check(_context: ToolContext, _args: dict[str, Any]) -> ToolOutcome:
    return Acts(CheckMailbox())


async def _defer(_context: ToolContext, args: dict[str, Any]) -> ToolOutcome:
    minutes = args.get("defer_minutes")
    wait_s = None if minutes is None else minutes * 60.0
    return Acts(DeferItem(args["item_id"], args["reason"], wait_s))


async def _drop(_context: ToolContext, args: dict[str, Any]) -> ToolOutcome:
    return Acts(DropItem(args["item_id"], args["reason"]))


async def _prioritize(_context: ToolContext, args: dict[str, Any]) -> ToolOutcome:
    return Acts(PrioritizeItem(args["item_id"], args["priority"]))


async def _complete(_context: ToolContext, args: dict[str, Any]) -> ToolOutcome:
    return Acts(CompleteDeliberation(args))


CHECK_MAILBOX = Tool(
    name="check_mailbox",
    description="See what waits in your mailbox, what is in focus and what was decided lately.",
    parameters=parameters(()),
    effect="pure",
    interrupt="never",
    contexts=EVERYWHERE - {JUDGE},
    run=_check,
)

DEFER_MAILBOX_ITEM = Tool(
    name="defer_mailbox_item",
    description=(
        "Put a waiting item off, for some minutes or until you are idle. What people write to "
        "you cannot be put off."
    ),
    parameters=parameters(
        ("item_id", "reason"),
        item_id=_ID,
        reason=_REASON,
        defer_minutes={"type": "number", "minimum": 0, "maximum": _LONGEST_MIN},
    ),
    effect="pure",
    interrupt="never",
    contexts=EVERYWHERE - {JUDGE},
    run=_defer,
)

DROP_MAILBOX_ITEM = Tool(
    name="drop_mailbox_item",
    description=(
        "Discard a waiting item that is stale or redundant. What people write to you cannot be "
        "discarded."
    ),
    parameters=parameters(("item_id", "reason"), item_id=_ID, reason=_REASON),
    effect="pure",
    interrupt="never",
    contexts=EVERYWHERE - {JUDGE},
    run=_drop,
)

PRIORITIZE_MAILBOX_ITEM = Tool(
    name="prioritize_mailbox_item",
    description="Give a waiting item another priority, from 0 (critical) to 4 (background).",
    # The bounds are checked with the item, so that the answer has the shape of the others.
    parameters=parameters(
        ("item_id", "priority"), item_id=_ID, priority={"type": ["number", "string"]}
    ),
    effect="pure",
    interrupt="never",
    contexts=frozenset({DELIBERATION}),
    run=_prioritize,
)

COMPLETE_DELIBERATION = Tool(
    name="complete_deliberation",
    description=(
        "End the deliberation: say what you turn to now, and what becomes of every other item. "
        "process_item_ids, with more than one, are handled together; batch_context says how. "
        "situational_awareness and memory_updates stay in your memory."
    ),
    parameters=parameters(
        (),
        process_item_id=_ID,
        process_item_ids=_IDS,
        batch_context=_TEXT,
        defer_item_ids=_IDS,
        drop_item_ids=_IDS,
        inline_completed_ids=_IDS,
        reasoning=_TEXT,
        situational_awareness=_TEXT,
        memory_updates={"type": "array", "items": _MEMORY},
    ),
    effect="pure",
    interrupt="never",
    contexts=frozenset({DELIBERATION}),
    run=_complete,
)

MAILBOX = (
    CHECK_MAILBOX,
    DEFER_MAILBOX_ITEM,
    DROP_MAILBOX_ITEM,
    PRIORITIZE_MAILBOX_ITEM,
    COMPLETE_DELIBERATION,
)
