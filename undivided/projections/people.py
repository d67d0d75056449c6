"""Notifications and approvals: what people were told and asked."""

from __future__ import annotations

from datetime import timedelta

from msgspec.structs import replace

from undivided.domain.events import people as p
from undivided.domain.events.items import NoticePosted
from undivided.domain.notifications import SYSTEM
from undivided.domain.recorded import Recorded
from undivided.domain.state.people import (
    Answered,
    ApprovalPhase,
    ApprovalRow,
    Expired,
    NotificationRow,
    Pending,
    Withdrawn,
)

TOLD = p.NotificationPosted | p.NotificationRead | p.NotificationsAllRead | NoticePosted
ASKED = p.ApprovalRequested | p.ApprovalAnswered | p.ApprovalExpired | p.ApprovalCancelled
GIVEN_UP = "An item was given up"
"""The title of a notice about a dead letter."""


def notification_keys(recorded: Recorded) -> tuple[str, ...]:
    """The notifications that the event is about; a notice is one of them."""
    match recorded.event:
        case p.NotificationPosted(notification_id=key) | p.NotificationRead(notification_id=key):
            return (key,)
        case NoticePosted(notice_id=key):
            return (key,)
        case p.NotificationsAllRead(notification_ids=keys):
            return keys
        case _:
            return ()


def reduce_notification(row: NotificationRow | None, recorded: Recorded) -> NotificationRow | None:
    """The notification after `recorded`."""
    event, at = recorded.event, recorded.at
    match event:
        case p.NotificationPosted():
            return NotificationRow(
                id=event.notification_id, user_id=event.user_id, agent_id=event.agent_id,
                kind=event.kind, title=event.title, body=event.body, priority=event.priority,
                action=event.action, approval_id=event.approval_id, task_id=event.task_id,
                requirement_id=event.requirement_id, posted_at=at, version=recorded.version,
                changed_version=recorded.version,
            )  # fmt: skip
        case NoticePosted():
            return NotificationRow(
                id=event.notice_id, user_id=event.user_id, agent_id=event.agent_id, kind=SYSTEM,
                title=GIVEN_UP, body=event.text, priority="high", action=p.Action(),
                approval_id=None, task_id=None, requirement_id=None, posted_at=at,
                version=recorded.version, changed_version=recorded.version,
            )  # fmt: skip
        case p.NotificationRead() | p.NotificationsAllRead() if row is not None:
            if row.read_at is not None:
                return row
            return replace(row, read_at=at, changed_version=recorded.version)
        case _:
            return row


def approval_keys(recorded: Recorded) -> tuple[str, ...]:
    """The approval that the event is about."""
    event = recorded.event
    return (event.approval_id,) if isinstance(event, ASKED) else ()


def reduce_approval(row: ApprovalRow | None, recorded: Recorded) -> ApprovalRow | None:
    """The approval after `recorded`."""
    event, at = recorded.event, recorded.at
    match event:
        case p.ApprovalRequested():
            return _requested(event, recorded)
        case p.ApprovalAnswered():
            answered = Answered(event.approved, event.selected_option, event.comment, event.by, at)
            return _over(row, answered, recorded)
        case p.ApprovalExpired():
            return _over(row, Expired(), recorded)
        case p.ApprovalCancelled():
            return _over(row, Withdrawn(), recorded)
        case _:
            return row


def _over(row: ApprovalRow | None, phase: ApprovalPhase, recorded: Recorded) -> ApprovalRow | None:
    if row is None or not isinstance(row.phase, Pending):
        return row
    return replace(row, phase=phase, changed_version=recorded.version)


def _requested(event: p.ApprovalRequested, recorded: Recorded) -> ApprovalRow:
    limit = event.expires_s
    expires_at = None if limit is None else recorded.at + timedelta(seconds=limit)
    return ApprovalRow(
        id=event.approval_id, user_id=event.user_id, agent_id=event.agent_id,
        turn_id=event.turn_id, call_id=event.call_id, session_id=event.session_id,
        item_id=event.item_id, notification_id=event.notification_id, title=event.title,
        description=event.description, options=event.options,
        allow_freeform=event.allow_freeform, priority=event.priority, task_id=event.task_id,
        requested_at=recorded.at, expires_at=expires_at, phase=Pending(),
        version=recorded.version, changed_version=recorded.version,
    )  # fmt: skip
