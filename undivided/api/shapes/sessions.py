"""Sessions and their messages as the API shows them."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Struct, UnsetType

from undivided.api.answers import instant
from undivided.domain.dialogue import Usage
from undivided.domain.events.people import NotificationPriority
from undivided.domain.events.sessions import MessagePosted, ModelResponded, ToolCallFinished
from undivided.domain.state.session import SessionStatus
from undivided.store.queries.messages import Message, Role, TurnOrigin, Visibility
from undivided.store.queries.sessions import SessionThen


class UsageShape(Struct, frozen=True, rename="camel", kw_only=True):
    """What model requests consumed, in tokens; `cost` where a price is known."""

    input_tokens: int
    output_tokens: int
    cache_tokens: int
    requests: int
    cost: float | None


class Session(Struct, frozen=True, rename="camel", kw_only=True):
    """One conversation. `revision` is the version of its stream; it rises with every event."""

    id: str
    agent_id: str
    status: SessionStatus
    active_turn: str | None
    pending_count: int
    reserved_slots: int
    revision: int
    binding: dict[str, str]
    turns: int
    usage: UsageShape
    opened_at: str
    changed_at: str
    position: str


class SessionPage(Struct, frozen=True, rename="camel", kw_only=True):
    """Some sessions, oldest first."""

    items: list[Session]
    next_cursor: str | None
    position: str


class ToolCallShape(Struct, frozen=True, rename="camel", kw_only=True):
    """A call that a model asked for."""

    id: str
    tool: str
    args: dict[str, Any]


class MessageMetadata(Struct, frozen=True, rename="camel", kw_only=True):
    """What a message is about that the agent wrote of its own accord."""

    notify_user: bool
    priority: NotificationPriority
    task_id: str | UnsetType = UNSET
    requirement_id: str | UnsetType = UNSET


class MessageShape(Struct, frozen=True, rename="camel", kw_only=True):
    """One message of a session. `toolCallId` names the call that a tool's message answers."""

    id: str
    role: Role
    content: str
    source: str
    visibility: Visibility
    turn_id: str
    turn_origin: TurnOrigin
    created_at: str
    position: str
    tool_calls: list[ToolCallShape] | UnsetType = UNSET
    tool_call_id: str | UnsetType = UNSET
    metadata: MessageMetadata | UnsetType = UNSET


class MessagePage(Struct, frozen=True, rename="camel", kw_only=True):
    """Some messages of a session, in order."""

    items: list[MessageShape]
    next_cursor: str | None
    position: str


def session_shape(then: SessionThen, position: str | None = None) -> Session:
    """How a session is shown."""
    row = then.session
    return Session(
        id=row.id, agent_id=row.agent_id, status=row.status, active_turn=row.active_turn,
        pending_count=then.pending, reserved_slots=0, revision=then.revision,
        binding=row.binding, turns=row.turns, usage=usage_shape(row.usage),
        opened_at=instant(row.opened_at), changed_at=instant(row.changed_at),
        position=position or then.position,
    )  # fmt: skip


def usage_shape(usage: Usage) -> UsageShape:
    """How usage is shown."""
    return UsageShape(
        input_tokens=usage.input_tokens, output_tokens=usage.output_tokens,
        cache_tokens=usage.cache_tokens, requests=usage.requests, cost=usage.cost,
    )  # fmt: skip


def message_shape(message: Message) -> MessageShape:
    """How a message is shown."""
    event = message.event
    calls: list[ToolCallShape] | UnsetType = UNSET
    if isinstance(event, ModelResponded) and event.calls:
        calls = [ToolCallShape(id=c.id, tool=c.tool, args=c.args) for c in event.calls]
    return MessageShape(
        id=message.id, role=message.role, content=message.content, source=message.source,
        visibility=message.visibility, turn_id=event.turn_id, turn_origin=message.turn_origin,
        created_at=instant(message.at), position=message.position, tool_calls=calls,
        tool_call_id=event.call_id if isinstance(event, ToolCallFinished) else UNSET,
        metadata=metadata_shape(event) if isinstance(event, MessagePosted) else UNSET,
    )  # fmt: skip


def metadata_shape(event: MessagePosted) -> MessageMetadata:
    """What a posted message is about."""
    return MessageMetadata(
        notify_user=True, priority=event.priority, task_id=event.task_id or UNSET,
        requirement_id=event.requirement_id or UNSET,
    )  # fmt: skip
