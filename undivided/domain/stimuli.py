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

    `scenario` is what a model request says it is about; `activity` is the kind of activity that
    handling leaves, None where that shows only then, and `creates_activity` whether it leaves one
    as a rule. `merges_by` names the key by which waiting items of this type join; of a type that
    `replaces` only the newest waits. `single_owner`: it answers one asker in one place, and never
    joins what others want. `protected` items are never deferred or dropped by the agent itself;
    One that `ages` is discarded when it has waited too long. `scheduled`: a clock sends it.
    `sender` is who sends one when nobody says who did. `invoked_by` is the mark among an item's
    extras with which it invokes the model although its type does not. `done` is what the agent's
    chat reads came of one that was handled.
    """

    name: str
    label: str
    icon: str
    category: Category
    priority: Priority
    scenario: str
    activity: str | None
    creates_activity: bool = True
    invokes_model: bool = True
    wakes: bool = True
    merges_by: MergeKey | None = None
    replaces: bool = False
    single_owner: bool = False
    protected: bool = False
    ages: bool = False
    scheduled: bool = False
    sender: SenderRole = "system"
    invoked_by: str | None = None
    done: str = "processed"

    @property
    def is_comment(self) -> bool:
        """Whether it is what somebody said about a task or a requirement."""
        return self.merges_by in ("taskId", "requirementId")

    @property
    def is_channel_message(self) -> bool:
        """Whether it was said in a channel, where each sender is named."""
        return self.merges_by == "channelKey"


# Where one type must be named, it is named by these.
HUMAN_CHAT = "human_chat"
A2A_MESSAGE = "a2a_message"
MENTION = "mention"
TASK_STATUS_UPDATE = "task_status_update"
TASK_COMMENT = "task_comment"
SYSTEM_EVENT = "system_event"
CALLBACK_RESULT = "callback_result"
DAILY_REPORT = "daily_report"
HEARTBEAT = "heartbeat"
MEMORY_CONSOLIDATION = "memory_consolidation"

_T = StimulusType
_ALL = (
    _T(HUMAN_CHAT, "Chat", "💬", "interaction", 0, "chat", "chat", protected=True, sender="user"),
    _T(MENTION, "Mention", "@", "interaction", 1, "a2a", "chat", done="responded to mention"),
    _T(A2A_MESSAGE, "Agent Message", "🔗", "interaction", 2, "a2a", "a2a",
       merges_by="channelKey", sender="agent", done="responded"),
    _T(TASK_STATUS_UPDATE, "Task Status", "📋", "task", 1, "task", None, invokes_model=False,
       invoked_by="triggerExecution", ages=True, done="executed"),
    _T(TASK_COMMENT, "Task Comment", "💬", "task", 2, "comment_response", None,
       creates_activity=False, invokes_model=False, merges_by="taskId",
       done="responded to comment"),
    _T("requirement_comment", "Requirement Comment", "💬", "task", 2, "comment_response", None,
       creates_activity=False, invokes_model=False, merges_by="requirementId",
       done="responded to requirement comment"),
    _T("review_request", "Review Request", "👀", "task", 1, "review", "chat", done="reviewed"),
    _T("session_reply", "Session Reply", "↩", "task", 1, "session_reply", "respond_in_session",
       single_owner=True, done="replied in session"),
    _T("requirement_update", "Requirement Update", "📝", "notification", 1,
       "requirement_action", "internal", invokes_model=False, invoked_by="actionRequired",
       done="processed (action required)"),
    _T(SYSTEM_EVENT, "System Event", "⚙", "system", 1, "system", "internal"),
    _T(CALLBACK_RESULT, "Callback Result", "↩", "system", 1, "callback", "internal",
       single_owner=True, done="callback processed"),
    _T(DAILY_REPORT, "Daily Report", "📊", "system", 2, "system", "internal", ages=True,
       scheduled=True),
    _T(HEARTBEAT, "Heartbeat", "♡", "system", 3, "heartbeat", "heartbeat", replaces=True,
       ages=True, scheduled=True, done="heartbeat processed"),
    _T(MEMORY_CONSOLIDATION, "Memory Consolidation", "🧠", "system", 4,
       "memory_consolidation", "internal", ages=True, scheduled=True),
    _T("agent_signal", "Signal of a Run", "📡", "orchestration", 2, "continuation", "internal",
       single_owner=True),
    _T("agent_completion", "Completion of a Run", "🏁", "orchestration", 1, "continuation",
       "internal", single_owner=True),
    _T("text", "Team Message", "✉", "team", 2, "a2a", "a2a", sender="agent"),
    _T("user_message", "User Message to a Team", "💬", "team", 0, "chat", "chat",
       protected=True, sender="user"),
    _T("task_notification", "Task Notification", "🔔", "team", 3, "task", "internal",
       invokes_model=False, wakes=False),
    _T("framework_alert", "Framework Alert", "⚠", "team", 1, "system", "internal"),
)  # fmt: skip

REGISTRY: dict[str, StimulusType] = {kind.name: kind for kind in _ALL}

BY_PERSON = tuple(name for name, kind in REGISTRY.items() if kind.protected)
"""What a person says to an agent, or to its team."""
BY_CLOCK = tuple(name for name, kind in REGISTRY.items() if kind.scheduled)
"""What a clock sends."""


def stimulus_type(name: str) -> StimulusType:
    """Look a type up.

    Raises:
        Invalid: no such type; the sentence lists those there are.
    """
    if name in REGISTRY:
        return REGISTRY[name]
    known = ", ".join(REGISTRY)
    raise Invalid(f"unknown sourceType {name[:60]!r}; one of: {known}", "sourceType")
