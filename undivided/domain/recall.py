"""Looking back: what an agent did, step by step, and what was said in its conversations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from undivided.domain.dialogue import AssistantSaid, Said, ToolAnswered, UserSaid
from undivided.domain.memory import told
from undivided.domain.state.session import ActivityRow
from undivided.domain.tooling import Act

READ_AT_MOST = 100
TEXT_CUT = 2_000

Scope = Literal["chat", "chat_session", "channel", "session"]


class ListActivities(Act, frozen=True):
    """The last things that the agent did, of one type if one is named."""

    type: str | None
    limit: int


class ReadActivity(Act, frozen=True):
    """What was said and done last in one activity, before a place in it if one is given."""

    activity_id: str
    limit: int
    before: int | None = None


class RecallContext(Act, frozen=True):
    """What was said last: in the agent's chat, in a channel, or in a session of its own.

    `before` is the place where an earlier answer began.
    """

    scope: Scope
    name: str
    limit: int
    before: int | None = None


def activities(rows: Sequence[ActivityRow]) -> str:
    """What listing answers, the newest first."""
    return told(
        status="ok",
        activities=[
            {
                "id": row.id, "type": row.type, "summary": row.summary, "outcome": row.outcome,
                "startedAt": row.started_at.isoformat(),
                "endedAt": row.ended_at.isoformat() if row.ended_at else None,
            }
            for row in rows
        ],
    )  # fmt: skip


def transcript(said: Sequence[Said]) -> list[dict[str, str]]:
    """Messages as a model reads them, each cut."""
    return [_line(one) for one in said]


def _line(one: Said) -> dict[str, str]:
    match one:
        case UserSaid(content=text):
            return {"role": "user", "content": text[:TEXT_CUT]}
        case AssistantSaid(content=text, calls=calls):
            names = ", ".join(call.tool for call in calls)
            called = f" [calls {names}]" if names else ""
            return {"role": "assistant", "content": f"{text[:TEXT_CUT]}{called}".strip()}
        case ToolAnswered(tool=tool, content=text):
            return {"role": "tool", "tool": tool, "content": text[:TEXT_CUT]}
