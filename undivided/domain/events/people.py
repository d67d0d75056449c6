"""Events of a person: what they are told and asked; stream `user:<id>`.

A person here is a name: whoever wrote to an agent, or whom an agent named. `all` is everybody.
"""

from __future__ import annotations

from typing import Literal

from undivided.domain.value import Value

NotificationPriority = Literal["low", "normal", "high", "urgent"]
ActionType = Literal["navigate", "open_chat", "none"]


class Action(Value, frozen=True, omit_defaults=True):
    """Where a notification leads: to a `path` of the console, into a chat, or nowhere."""

    type: ActionType = "none"
    path: str | None = None
    agent_id: str | None = None
    session_id: str | None = None


class ApprovalOption(Value, frozen=True, omit_defaults=True):
    """One of the answers that a person may choose."""

    id: str
    label: str
    description: str = ""


class NotificationPosted(Value, frozen=True, kw_only=True):
    """A person is told something; `kind` is its type in the registry of notifications."""

    notification_id: str
    user_id: str
    kind: str
    title: str
    body: str
    priority: NotificationPriority
    action: Action
    agent_id: str | None = None
    turn_id: str | None = None
    approval_id: str | None = None
    task_id: str | None = None
    requirement_id: str | None = None


class NotificationRead(Value, frozen=True, kw_only=True):
    """A person has seen one notification."""

    notification_id: str
    user_id: str
    by: str


class NotificationsAllRead(Value, frozen=True, kw_only=True):
    """A person has seen everything that was unread: `notification_ids`."""

    user_id: str
    notification_ids: tuple[str, ...]
    by: str


class ApprovalRequested(Value, frozen=True, kw_only=True):
    """A turn asks a person and waits in `call_id`; with `expires_s` only for so long."""

    approval_id: str
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
    expires_s: float | None = None
    task_id: str | None = None


class ApprovalAnswered(Value, frozen=True, kw_only=True):
    """A person answered, in time; the turn that asked goes on with it."""

    approval_id: str
    user_id: str
    agent_id: str
    turn_id: str
    approved: bool
    selected_option: str
    comment: str
    by: str


class ApprovalExpired(Value, frozen=True, kw_only=True):
    """Its time was over before anybody answered; recorded by whoever finds that."""

    approval_id: str
    user_id: str
    agent_id: str
    turn_id: str


class ApprovalCancelled(Value, frozen=True, kw_only=True):
    """The turn that asked no longer waits for an answer; recorded by whoever finds that."""

    approval_id: str
    user_id: str
    agent_id: str
    turn_id: str
