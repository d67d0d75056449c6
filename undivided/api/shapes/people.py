"""What people were told and asked, as the API shows it."""

from __future__ import annotations

from msgspec import Struct

from undivided.api.answers import instant, instant_or_none
from undivided.domain.events.people import ActionType, NotificationPriority
from undivided.domain.notifications import NOTIFICATION_TYPES
from undivided.domain.state.people import Answered
from undivided.store.queries.people import ApprovalStatus, ApprovalThen, NotificationThen


class ActionTarget(Struct, frozen=True, rename="camel", kw_only=True, omit_defaults=True):
    """Where a notification leads: a path of the console, or an agent's chat."""

    path: str | None = None
    agent_id: str | None = None
    session_id: str | None = None


class NotificationMetadata(Struct, frozen=True, rename="camel", kw_only=True, omit_defaults=True):
    """What a notification is about."""

    approval_id: str | None = None
    task_id: str | None = None
    requirement_id: str | None = None


class Notification(Struct, frozen=True, rename="camel", kw_only=True):
    """Something that a person was told."""

    id: str
    user_id: str
    agent_id: str | None
    type: str
    label: str
    icon: str
    category: str
    title: str
    body: str
    priority: NotificationPriority
    read: bool
    read_at: str | None
    action_type: ActionType
    action_target: ActionTarget | None
    metadata: NotificationMetadata
    created_at: str
    position: str


class NotificationPage(Struct, frozen=True, rename="camel", kw_only=True):
    """Some notifications, newest first, under both names that a list has.

    `totalCount` counts what was asked for, `unreadCount` all that the person has not seen.
    """

    items: list[Notification]
    notifications: list[Notification]
    total_count: int
    unread_count: int
    next_cursor: str | None
    position: str


class ReadMark(Struct, frozen=True, rename="camel", kw_only=True):
    """How many notifications are read now that were not."""

    success: bool
    count: int
    position: str


class ApprovalOptionShape(Struct, frozen=True, rename="camel", kw_only=True):
    """An answer that may be chosen."""

    id: str
    label: str
    description: str


class Approval(Struct, frozen=True, rename="camel", kw_only=True):
    """Something that an agent asked a person. Until it is answered, `approved` is null."""

    id: str
    user_id: str
    agent_id: str
    turn_id: str
    session_id: str
    mailbox_item_id: str
    title: str
    description: str
    options: list[ApprovalOptionShape]
    allow_freeform: bool
    priority: NotificationPriority
    task_id: str | None
    status: ApprovalStatus
    approved: bool | None
    selected_option: str | None
    comment: str | None
    responded_by: str | None
    responded_at: str | None
    created_at: str
    expires_at: str | None
    position: str


class ApprovalPage(Struct, frozen=True, rename="camel", kw_only=True):
    """Some requests for approval, newest first."""

    items: list[Approval]
    next_cursor: str | None
    position: str


def notification_shape(then: NotificationThen) -> Notification:
    """How a notification is shown."""
    row, action = then.row, then.row.action
    kind = NOTIFICATION_TYPES.get(row.kind)
    target = None
    if action.type != "none":
        target = ActionTarget(
            path=action.path, agent_id=action.agent_id, session_id=action.session_id
        )
    return Notification(
        id=row.id, user_id=row.user_id, agent_id=row.agent_id, type=row.kind,
        label=kind.label if kind else row.kind, icon=kind.icon if kind else "",
        category=kind.category if kind else "system", title=row.title, body=row.body,
        priority=row.priority, read=row.read_at is not None,
        read_at=instant_or_none(row.read_at), action_type=action.type, action_target=target,
        metadata=NotificationMetadata(
            approval_id=row.approval_id, task_id=row.task_id, requirement_id=row.requirement_id
        ),
        created_at=instant(row.posted_at), position=then.position,
    )  # fmt: skip


def approval_shape(then: ApprovalThen, position: str | None = None) -> Approval:
    """How a request for approval is shown."""
    row = then.row
    over = row.phase if then.status in ("approved", "rejected") else None
    said = over if isinstance(over, Answered) else None
    return Approval(
        id=row.id, user_id=row.user_id, agent_id=row.agent_id, turn_id=row.turn_id,
        session_id=row.session_id, mailbox_item_id=row.item_id, title=row.title,
        description=row.description,
        options=[
            ApprovalOptionShape(id=one.id, label=one.label, description=one.description)
            for one in row.options
        ],
        allow_freeform=row.allow_freeform, priority=row.priority, task_id=row.task_id,
        status=then.status, approved=said.approved if said else None,
        selected_option=said.selected_option if said else None,
        comment=said.comment if said else None, responded_by=said.by if said else None,
        responded_at=instant(said.answered_at) if said else None,
        created_at=instant(row.requested_at), expires_at=instant_or_none(row.expires_at),
        position=position or then.position,
    )  # fmt: skip
