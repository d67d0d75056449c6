"""The type registry: the one table of what can reach an agent.

Routes, rules, filters, console and OpenAPI derive from it; no other place may list types.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from undivided.domain.errors import Invalid

Category = Literal["interaction", "task", "notification", "system", "orchestration", "team"]
MergeKey = Literal["taskId", "requirementId", "channelKey"]
SenderRole = Literal["user", "agent", "system"]
Priority = Literal[0, 1, 2, 3, 4]
"""0 critical, 1 high, 2 normal, 3 low, 4 background; the lower number wins."""


class StimulusType(Struct, frozen=True):
    """What the system knows about one type of stimulus.

    `scenario` is what a model request says it is about; `activity` is None where handling
    leaves no activity; `merges_by` names the key by which waiting items of this type join;
    `protected` items are never deferred or dropped by the agent itself; `sender` is who sends
    one when nobody says who did; `invoked_by` is the mark among an item's extras with which it
    invokes the model although its type does not.
    """

    name: str
    label: str
    icon: str
    category: Category
    priority: Priority
    scenario: str
    activity: str | None
    invokes_model: bool = True
    wakes: bool = True
    merges_by: MergeKey | None = None
    protected: bool = False
    sender: SenderRole = "system"
    invoked_by: str | None = None


MENTION = "mention"
"""Somebody named the agent: the one type that a rule of attention is about by its name."""

_T = StimulusType
_ALL = (
    _T("human_chat", "Chat message", "💬", "interaction", 0, "chat", "chat", protected=True,
       sender="user"),
    _T(MENTION, "Mention", "📣", "interaction", 1, "a2a", "chat"),
    _T("a2a_message", "Agent message", "🤝", "interaction", 2, "a2a", "a2a",
       merges_by="channelKey", sender="agent"),
    _T("task_status_update", "Task status", "📌", "task", 1, "task", "internal",
       invokes_model=False, invoked_by="triggerExecution"),
    _T("task_comment", "Task comment", "🗨", "task", 2, "comment_response", None,
       invokes_model=False, merges_by="taskId"),
    _T("requirement_comment", "Requirement comment", "🗨", "task", 2, "comment_response", None,
       invokes_model=False, merges_by="requirementId"),
    _T("review_request", "Review request", "🔎", "task", 1, "review", "chat"),
    _T("session_reply", "Reply in session", "↩", "task", 1, "session_reply",
       "respond_in_session"),
    _T("requirement_update", "Requirement update", "📋", "notification", 1,
       "requirement_action", "internal", invokes_model=False, invoked_by="actionRequired"),
    _T("system_event", "System event", "⚙", "system", 1, "system", "internal"),
    _T("callback_result", "Callback result", "⏎", "system", 1, "callback", "internal"),
    _T("daily_report", "Daily report", "📰", "system", 2, "system", "internal"),
    _T("heartbeat", "Heartbeat", "♥", "system", 3, "heartbeat", "heartbeat"),
    _T("memory_consolidation", "Memory consolidation", "🧠", "system", 4,
       "memory_consolidation", "internal"),
    _T("agent_signal", "Signal of a run", "📡", "orchestration", 2, "continuation", "internal"),
    _T("agent_completion", "Completion of a run", "🏁", "orchestration", 1, "continuation",
       "internal"),
    _T("text", "Team message", "✉", "team", 2, "a2a", "a2a", sender="agent"),
    _T("user_message", "User message to a team", "💬", "team", 0, "chat", "chat",
       protected=True, sender="user"),
    _T("task_notification", "Task notification", "🔔", "team", 3, "task", "internal",
       invokes_model=False, wakes=False),
    _T("framework_alert", "Framework alert", "⚠", "team", 1, "system", "internal"),
)  # fmt: skip

REGISTRY: dict[str, StimulusType] = {kind.name: kind for kind in _ALL}


def stimulus_type(name: str) -> StimulusType:
    """Look a type up.

    Raises:
        Invalid: no such type; the sentence lists those there are.
    """
    if name in REGISTRY:
        return REGISTRY[name]
    known = ", ".join(REGISTRY)
    raise Invalid(f"unknown sourceType {name[:60]!r}; one of: {known}", "sourceType")
