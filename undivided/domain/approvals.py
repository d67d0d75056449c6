"""Asking a person: what may be asked, what may be answered, and what the model reads of it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

from msgspec import Struct

from undivided.domain.errors import Invalid, Rejected
from undivided.domain.events.flights import FocusAnswered
from undivided.domain.events.items import ItemResurfaced
from undivided.domain.events.people import (
    Action,
    ApprovalAnswered,
    ApprovalCancelled,
    ApprovalExpired,
    ApprovalOption,
    ApprovalRequested,
    NotificationPosted,
    NotificationPriority,
)
from undivided.domain.notifications import APPROVAL_REQUEST, From, addressee
from undivided.domain.state.agent import AgentRow, Suspended
from undivided.domain.state.item import Deferred, ItemRow
from undivided.domain.state.people import Answered, ApprovalRow, Expired, Pending, Withdrawn
from undivided.domain.state.session import TurnRow, TurnSetAside
from undivided.domain.tooling import Act
from undivided.domain.waits import Approval, approval_result

OPTIONS = 20
"""How many options may be given at most."""
APPROVE, REJECT = "approve", "reject"
YES_OR_NO = (ApprovalOption(APPROVE, "Approve"), ApprovalOption(REJECT, "Reject"))


class AskPerson(Act, frozen=True, kw_only=True):
    """An agent asks a person, and its turn waits for the answer."""

    title: str
    description: str
    options: tuple[ApprovalOption, ...] = YES_OR_NO
    allow_freeform: bool = True
    priority: NotificationPriority = "high"
    task_id: str | None = None
    expires_s: float | None = None
    target: str | None = None


class Named(Struct, frozen=True):
    """Fresh names for what is asked, and the call that waits for it."""

    approval_id: str
    notification_id: str
    call_id: str


class Answer(Struct, frozen=True):
    """What a person says to it."""

    approved: bool
    selected_option: str | None = None
    comment: str = ""
    by: str = "user"


def options_of(wanted: Sequence[dict[str, Any]]) -> tuple[ApprovalOption, ...]:
    """The options that a call gives; none are approve and reject.

    Raises:
        Invalid: too many, an empty id or label, or two of one id.
    """
    if not wanted:
        return YES_OR_NO
    if len(wanted) > OPTIONS:
        raise Invalid(f"at most {OPTIONS} options; got {len(wanted)}", "options")
    options = tuple(
        ApprovalOption(one["id"], one["label"], one.get("description", "")) for one in wanted
    )
    if any(not option.id.strip() or not option.label.strip() for option in options):
        raise Invalid("each option needs an id and a label", "options")
    if len({option.id for option in options}) < len(options):
        raise Invalid("each option needs an id of its own", "options")
    return options


def requested(
    ask: AskPerson, speaker: From, item: ItemRow, named: Named
) -> tuple[ApprovalRequested, NotificationPosted]:
    """The request, and the notification that tells of it."""
    user_id = addressee(speaker.agent, ask.target)
    request = ApprovalRequested(
        approval_id=named.approval_id, user_id=user_id, agent_id=speaker.agent.id,
        turn_id=speaker.turn_id, call_id=named.call_id, session_id=speaker.session_id,
        item_id=item.id, notification_id=named.notification_id, title=ask.title,
        description=ask.description, options=ask.options, allow_freeform=ask.allow_freeform,
        priority=ask.priority, expires_s=ask.expires_s, task_id=ask.task_id,
    )  # fmt: skip
    told = NotificationPosted(
        notification_id=named.notification_id, user_id=user_id, kind=APPROVAL_REQUEST,
        title=ask.title, body=ask.description, priority=ask.priority,
        action=Action("navigate", path=_path(named.approval_id, ask.task_id)),
        agent_id=speaker.agent.id, turn_id=speaker.turn_id, approval_id=named.approval_id,
        task_id=ask.task_id,
    )  # fmt: skip
    return request, told


def _path(approval_id: str, task_id: str | None) -> str:
    task = "" if task_id is None else f"task={task_id}&"
    return f"/work?{task}approval={approval_id}"


def wait_for(ask: AskPerson, approval_id: str, patience_s: float) -> Approval:
    """What the turn waits for: as long as was said, else as the policy's patience lasts."""
    if ask.expires_s is None:
        return Approval(approval_id, patience_s, expires=False)
    return Approval(approval_id, ask.expires_s, expires=True)


class Waiting(Struct, frozen=True):
    """Where the turn that asked waits; `item` where it was set aside meanwhile."""

    item: ItemRow | None = None


def waiting_for(
    row: ApprovalRow, agent: AgentRow, turn: TurnRow | None, item: ItemRow | None
) -> Waiting | None:
    """Whether the turn that asked still waits for the answer, and where."""
    focus = agent.attention
    if isinstance(focus, Suspended) and _is_for(row, focus.wait):
        return Waiting() if focus.answer is None and focus.stop_by is None else None
    if turn is None or item is None or not isinstance(turn.phase, TurnSetAside):
        return None
    waits = turn.phase.waiting is not None and _is_for(row, turn.phase.waiting.wait)
    phase = item.phase
    if waits and isinstance(phase, Deferred) and phase.waits and phase.answer is None:
        return None if phase.stop_by is not None else Waiting(item)
    return None


def _is_for(row: ApprovalRow, wait: object) -> bool:
    return isinstance(wait, Approval) and wait.approval_id == row.id


class Late(Struct, frozen=True):
    """It cannot be answered any more; `event` says why, where that is not recorded yet."""

    code: Literal["approval_answered", "approval_expired", "approval_cancelled"]
    event: ApprovalExpired | ApprovalCancelled | None = None

    def refusal(self, row: ApprovalRow) -> Rejected:
        """What whoever answered is told."""
        why = {
            "approval_answered": "was answered already",
            "approval_expired": "expired before it was answered",
            "approval_cancelled": "is not waited for any more: the turn that asked is over",
        }[self.code]
        return Rejected(self.code, f"approval {row.id} {why}")


def late(row: ApprovalRow, waiting: Waiting | None, now: datetime) -> Late | None:
    """Why it cannot be answered, if it cannot."""
    about = {
        "approval_id": row.id, "user_id": row.user_id, "agent_id": row.agent_id,
        "turn_id": row.turn_id,
    }  # fmt: skip
    match row.phase:
        case Answered():
            return Late("approval_answered")
        case Expired():
            return Late("approval_expired")
        case Withdrawn():
            return Late("approval_cancelled")
        case Pending() if row.expires_at is not None and row.expires_at <= now:
            return Late("approval_expired", ApprovalExpired(**about))
        case Pending() if waiting is None:
            return Late("approval_cancelled", ApprovalCancelled(**about))
        case Pending():
            return None


def chosen(row: ApprovalRow, answer: Answer) -> str:
    """The option that is meant.

    Raises:
        Invalid: no such option, one that contradicts `approved`, none where one is needed, or a
            comment where none is wanted.
    """
    if answer.comment and not row.allow_freeform:
        raise Invalid(f"approval {row.id} takes no comment; choose an option", "comment")
    known = tuple(option.id for option in row.options)
    plain = row.options == YES_OR_NO
    if answer.selected_option is None:
        if plain:
            return APPROVE if answer.approved else REJECT
        if answer.approved and not answer.comment:
            raise Invalid(f"choose one of {', '.join(known)}", "selectedOption")
        return ""
    if answer.selected_option not in known:
        raise Invalid(
            f"unknown option {answer.selected_option[:60]!r}; one of: {', '.join(known)}",
            "selectedOption",
        )
    if plain and (answer.selected_option == APPROVE) is not answer.approved:
        raise Invalid("approved and selectedOption contradict each other", "selectedOption")
    return answer.selected_option


def answered(row: ApprovalRow, answer: Answer, option: str) -> ApprovalAnswered:
    """The answer, for the person's stream."""
    return ApprovalAnswered(
        approval_id=row.id, user_id=row.user_id, agent_id=row.agent_id, turn_id=row.turn_id,
        approved=answer.approved, selected_option=option, comment=answer.comment, by=answer.by,
    )  # fmt: skip


def carried_on(
    row: ApprovalRow, waiting: Waiting, content: str
) -> tuple[FocusAnswered | ItemResurfaced, ...]:
    """The answer, for the agent's stream; a turn that was set aside comes back with it."""
    item = waiting.item
    focus = FocusAnswered(
        agent_id=row.agent_id, turn_id=row.turn_id, call_id=row.call_id, content=content,
        item_id=None if item is None else item.id,
    )  # fmt: skip
    if item is None:
        return (focus,)
    return focus, ItemResurfaced(agent_id=row.agent_id, item_id=item.id, cause="answered")


def told_answer(answer: Answer, option: str) -> str:
    """What the model reads of an answer."""
    return approval_result("ok", answer.approved, option, answer.comment)
