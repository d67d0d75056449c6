"""What people were told and asked, as rows."""

from __future__ import annotations

from datetime import datetime

from undivided.domain.events.people import Action, ApprovalOption, NotificationPriority
from undivided.domain.value import Value


class NotificationRow(Value, frozen=True, kw_only=True):
    """Something one person was told.

    `version` is that of the event that told it, `changed_version` that of the last about it.
    """

    id: str
    user_id: str
    agent_id: str | None
    kind: str
    title: str
    body: str
    priority: NotificationPriority
    action: Action
    approval_id: str | None
    task_id: str | None
    requirement_id: str | None
    posted_at: datetime
    version: int
    changed_version: int
    read_at: datetime | None = None


class Pending(Value, frozen=True, tag="pending", tag_field="status"):
    """Nobody has answered yet."""


class Answered(Value, frozen=True, tag="answered", tag_field="status"):
    """Somebody answered."""

    approved: bool
    selected_option: str
    comment: str
    by: str
    answered_at: datetime


class Expired(Value, frozen=True, tag="expired", tag_field="status"):
    """Nobody answered in time."""


class Withdrawn(Value, frozen=True, tag="cancelled", tag_field="status"):
    """The turn that asked did not wait for it."""


ApprovalPhase = Pending | Answered | Expired | Withdrawn


class ApprovalRow(Value, frozen=True, kw_only=True):
    """Something one person was asked.

    That it expired, or that its turn is over, is recorded by whoever finds it: until then
    `expires_at` and the turn say so.
    """

    id: str
    user_id: str
    agent_id: str
    turn_id: str
    call_id: str
    session_id: str
    item_id: str
    notification_id: str
    title: str
    description: str
    options: tuple[ApprovalOption, ...]
    allow_freeform: bool
    priority: NotificationPriority
    task_id: str | None
    requested_at: datetime
    expires_at: datetime | None
    phase: ApprovalPhase
    version: int
    changed_version: int
