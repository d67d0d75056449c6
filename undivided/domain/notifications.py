"""The registry of notifications: the one table of what people can be told about.

And what an agent's own tools tell: a notification, and beside it a message in the agent's chat,
so that whoever answers there finds what the answer is about.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from undivided.domain.endings import OWNER
from undivided.domain.errors import Invalid
from undivided.domain.events.people import (
    Action,
    ActionType,
    NotificationPosted,
    NotificationPriority,
)
from undivided.domain.events.sessions import MessagePosted
from undivided.domain.ids import checked_id
from undivided.domain.state.agent import AgentRow
from undivided.domain.tooling import Act

EVERYBODY = "all"
"""Whom a notification is for that everybody sees."""
NAME_LIMIT = 200

NotificationCategory = Literal["approval", "task", "agent", "system"]


class NotificationType(Struct, frozen=True):
    """What the system knows about one type of notification."""

    name: str
    label: str
    icon: str
    priority: NotificationPriority
    action: ActionType
    category: NotificationCategory


APPROVAL_REQUEST, AGENT_REPORT, SYSTEM = "approval_request", "agent_report", "system"

_T = NotificationType
_ALL = (
    _T(APPROVAL_REQUEST, "Approval Request", "🔐", "high", "navigate", "approval"),
    _T("task_created", "Task Created", "📋", "normal", "navigate", "task"),
    _T("task_completed", "Task Completed", "✅", "normal", "navigate", "task"),
    _T("task_review", "Task Review", "👁️", "normal", "navigate", "task"),
    _T("task_failed", "Task Failed", "❌", "high", "navigate", "task"),
    _T("requirement_created", "Requirement Proposed", "📝", "high", "navigate", "task"),
    _T("requirement_decision", "Requirement Decision", "⚖️", "normal", "navigate", "task"),
    _T(AGENT_REPORT, "Agent Report", "📊", "normal", "none", "agent"),
    _T(SYSTEM, "System", "⚙️", "normal", "none", "system"),
)

NOTIFICATION_TYPES: dict[str, NotificationType] = {kind.name: kind for kind in _ALL}


def notification_type(name: str) -> NotificationType:
    """Look a type up.

    Raises:
        Invalid: no such type; the sentence lists those there are.
    """
    if name in NOTIFICATION_TYPES:
        return NOTIFICATION_TYPES[name]
    known = ", ".join(NOTIFICATION_TYPES)
    raise Invalid(f"unknown type {name[:60]!r}; one of: {known}", "type")


class Related(Struct, frozen=True):
    """What a notification is about, where it is about anything."""

    task_id: str | None = None
    requirement_id: str | None = None


class Tell(Act, frozen=True, kw_only=True):
    """An agent tells a person something, unasked."""

    title: str
    body: str
    priority: NotificationPriority = "normal"
    related: Related = Related()
    target: str | None = None
    source: Literal["notify_user", "escalation"] = "notify_user"


class From(Struct, frozen=True):
    """The turn that speaks, and the session in which its message stands."""

    agent: AgentRow
    turn_id: str
    session_id: str


def addressee(agent: AgentRow, target: str | None) -> str:
    """Who is meant: whoever is named, else the person who wrote last, else the owner."""
    return target or agent.user_id or OWNER


def checked_user(name: str) -> str:
    """A person's name, if it can be one.

    Raises:
        Invalid: it is empty, too long, or holds what no name may hold.
    """
    if 0 < len(name) <= NAME_LIMIT and name.isprintable():
        return name
    raise Invalid(
        f"a user id has 1 to {NAME_LIMIT} printable characters; got {name[:40]!r}",
        "target_user_id",
    )


def related_to(task_id: str | None, requirement_id: str | None) -> Related:
    """What a notification is about.

    Raises:
        Invalid: an id that cannot be one.
    """
    for name, text in (("related_task_id", task_id), ("related_requirement_id", requirement_id)):
        if text is not None:
            checked_id(text, name)
    return Related(task_id, requirement_id)


def message_of(tell: Tell, speaker: From) -> MessagePosted:
    """What stands in the chat: title and body, and the context for whoever answers."""
    context = _context(tell)
    hidden = f"\n\n<!-- notify_context: {context} -->" if context else ""
    return MessagePosted(
        session_id=speaker.session_id, agent_id=speaker.agent.id, turn_id=speaker.turn_id,
        source=tell.source, content=f"**{tell.title}**\n\n{tell.body}{hidden}",
        priority=tell.priority, task_id=tell.related.task_id,
        requirement_id=tell.related.requirement_id,
    )  # fmt: skip


def _context(tell: Tell) -> str:
    related = tell.related
    known = {
        "task_id": related.task_id,
        "requirement_id": related.requirement_id,
        "priority": None if tell.priority == "normal" else tell.priority,
    }
    return ", ".join(f"{name}={value}" for name, value in known.items() if value is not None)


def notification_of(tell: Tell, speaker: From, notification_id: str) -> NotificationPosted:
    """What rings the bell: it leads to the task, or into the chat."""
    return NotificationPosted(
        notification_id=notification_id, user_id=addressee(speaker.agent, tell.target),
        kind=AGENT_REPORT, title=tell.title, body=tell.body, priority=tell.priority,
        action=action_for(tell.related.task_id, speaker), agent_id=speaker.agent.id,
        turn_id=speaker.turn_id, task_id=tell.related.task_id,
        requirement_id=tell.related.requirement_id,
    )  # fmt: skip


def action_for(task_id: str | None, speaker: From) -> Action:
    """To the task where there is one, else into the chat with the agent."""
    if task_id is not None:
        return Action("navigate", path=f"/work?task={task_id}")
    return Action("open_chat", agent_id=speaker.agent.id, session_id=speaker.session_id)
