"""What a model request can be about; tools and script rules are chosen by it."""

from __future__ import annotations

SCENARIOS = (
    "chat",
    "a2a",
    "task",
    "comment_response",
    "requirement_action",
    "review",
    "heartbeat",
    "memory_consolidation",
    "system",
    "session_reply",
    "callback",
    "deliberation",
    "continuation",
    "run",
    "judge",
)
"""Every scenario there is."""

CHAT = "chat"
"""The scenario of a turn in which a person is answered."""

JUDGE = "judge"
"""The scenario of an interrupt judge's request, and the name of its model profile."""

DELIBERATION = "deliberation"
"""The scenario of a turn that considers all that waits, before the agent chooses."""

HEARTBEAT = "heartbeat"
"""The scenario of a turn in which an agent looks around by itself."""

COMMENT_RESPONSE = "comment_response"
"""The scenario of a turn about a comment."""

REQUIREMENT_ACTION = "requirement_action"
"""The scenario of a turn about a requirement that asks for a decision."""
