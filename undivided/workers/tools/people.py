"""The tools that reach people: to tell them something, to ask them, to raise the alarm."""

from __future__ import annotations

from typing import Any

from undivided.domain.approvals import OPTIONS, AskPerson, options_of
from undivided.domain.errors import Invalid
from undivided.domain.notifications import Related, Tell, checked_user, related_to
from undivided.domain.scenarios import JUDGE
from undivided.domain.tooling import Act, Acts, Raised, ToolOutcome
from undivided.workers.tools.tool import EVERYWHERE, Tool, ToolContext, parameters

ANYWHERE = EVERYWHERE - {JUDGE}
_LONGEST_S = 366 * 86_400
_TITLE = {"type": "string", "minLength": 1, "maxLength": 500}
_TEXT = {"type": "string", "minLength": 1}
_ID = {"type": "string"}
_OPTION = {
    "type": "object",
    "properties": {"id": _ID, "label": {"type": "string"}, "description": {"type": "string"}},
    "required": ["id", "label"],
    "additionalProperties": False,
}


async def _notify_user(_context: ToolContext, args: dict[str, Any]) -> ToolOutcome:
    def wanted() -> Act:
        return Tell(
            title=args["title"],
            body=args["body"],
            priority=args.get("priority", "normal"),
            related=_related(args),
            target=_target(args),
        )

    return _acts(wanted)


async def _escalate(_context: ToolContext, args: dict[str, Any]) -> ToolOutcome:
    tell = Tell(title=args["title"], body=args["body"], priority="urgent", source="escalation")
    return Acts(tell)


async def _request_user_approval(_context: ToolContext, args: dict[str, Any]) -> ToolOutcome:
    def wanted() -> Act:
        return AskPerson(
            title=args["title"],
            description=args["description"],
            options=options_of(args.get("options", [])),
            allow_freeform=args.get("allow_freeform", True),
            priority=args.get("priority", "high"),
            task_id=_related(args).task_id,
            expires_s=args.get("expires_in_seconds"),
            target=_target(args),
        )

    return _acts(wanted)


def _acts(wanted: Any) -> ToolOutcome:
    try:
        return Acts(wanted())
    except Invalid as error:
        return Raised(str(error))


def _related(args: dict[str, Any]) -> Related:
    return related_to(args.get("related_task_id"), args.get("related_requirement_id"))


def _target(args: dict[str, Any]) -> str | None:
    target = args.get("target_user_id")
    return None if target is None else checked_user(target)


NOTIFY_USER = Tool(
    name="notify_user",
    description=(
        "Tell a person something they did not ask for: a status, a finding, an alert. It appears "
        "in your chat with them and in their notifications, and they may reply there."
    ),
    parameters=parameters(
        ("title", "body"),
        title=_TITLE,
        body=_TEXT,
        priority={"type": "string", "enum": ["low", "normal", "high", "urgent"]},
        related_task_id=_ID,
        related_requirement_id=_ID,
        target_user_id=_ID,
    ),
    effect="pure",
    interrupt="never",
    contexts=ANYWHERE,
    run=_notify_user,
)

ESCALATE = Tool(
    name="escalate",
    description="Raise something urgent with the person you work for, which you cannot settle.",
    parameters=parameters(("title", "body"), title=_TITLE, body=_TEXT),
    effect="pure",
    interrupt="never",
    contexts=ANYWHERE,
    run=_escalate,
)

REQUEST_USER_APPROVAL = Tool(
    name="request_user_approval",
    description=(
        "Ask a person to approve, to choose or to decide, and wait for their answer, however "
        "long that takes. Without options they can approve or reject. The result is JSON: status "
        "(ok, expired or cancelled), approved, selected_option, comment."
    ),
    parameters=parameters(
        ("title", "description"),
        title=_TITLE,
        description=_TEXT,
        options={"type": "array", "items": _OPTION, "maxItems": OPTIONS},
        allow_freeform={"type": "boolean"},
        related_task_id=_ID,
        priority={"type": "string", "enum": ["low", "normal", "high", "urgent"]},
        expires_in_seconds={"type": "number", "exclusiveMinimum": 0, "maximum": _LONGEST_S},
        target_user_id=_ID,
    ),
    effect="pure",
    interrupt="wake_only",
    contexts=ANYWHERE,
    run=_request_user_approval,
)

PEOPLE = (NOTIFY_USER, ESCALATE, REQUEST_USER_APPROVAL)
