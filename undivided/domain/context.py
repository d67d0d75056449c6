"""What a prompt says besides the conversation: who the agent is, what it has in mind, what to do.

It goes into the instructions, so that what people and agents say stays as they said it. What
waits in the mailbox is not in it: it may appear in no request before its own turn.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from msgspec import Struct

from undivided.domain.deliberation_prompt import age
from undivided.domain.scenarios import COMMENT_RESPONSE
from undivided.domain.state.agent import AgentRow, KnowledgeRow, MemoryRow
from undivided.domain.state.item import ItemRow

STREAK = 2
"""Comments by agents in a row, from which on another needs a reason."""
QUOTE_CUT = 120
REPLY_TO, AGENT_STREAK = "replyTo", "agentCommentStreak"
"""Marks of a comment: what it answers, as `{author, content}`; how many agents wrote in a row."""

_COMMENT = """## Answering a comment
Before you answer: read the task or requirement it is about, its earlier comments, and what you \
did about it (recall_activity). Then answer under it with a comment tool, once and to the point; \
what you only write here is not shown there. If it needs no answer, say [NO_REPLY_NEEDED].
Several comments, with --- between them, get one answer together: reply to the most important one \
(reply_to_comment_id) and quote the others in it."""
_STREAK = """The last {number} comments are by agents. Do not answer for politeness: comment again \
only with something new, or with a question to a person."""


class InMind(Struct, frozen=True):
    """What an agent has in mind: its working memory, oldest first, and what it always knows."""

    memories: tuple[MemoryRow, ...] = ()
    sections: tuple[KnowledgeRow, ...] = ()


def instructions(
    agent: AgentRow, in_mind: InMind, about: ItemRow, scenario: str, now: datetime
) -> str:
    """The instructions of a request, in the order of what changes least.

    `about` is the item in focus; of several comments the newest, whose marks say how they stand.
    """
    parts = (
        agent.instructions or f"You are {agent.name}.",
        _known(in_mind.sections),
        _working(in_mind.memories, now),
        _commenting(about) if scenario == COMMENT_RESPONSE else "",
    )
    return "\n\n".join(part for part in parts if part)


def _known(sections: tuple[KnowledgeRow, ...]) -> str:
    blocks = (f"### {row.key}\n{row.content}" for row in sections)
    return "\n\n".join(("## Long-term Memory", *blocks)) if sections else ""


def _working(memories: tuple[MemoryRow, ...], now: datetime) -> str:
    blocks = (
        f"### {row.key} ({age((now - row.noted_at).total_seconds())} ago)\n{row.content}"
        for row in memories
    )
    return "\n\n".join(("## Working Memory", *blocks)) if memories else ""


def _commenting(about: ItemRow) -> str:
    extra = about.payload.extra
    parts = [_COMMENT]
    if quoted := _quoted(extra.get(REPLY_TO)):
        parts.append(quoted)
    streak = extra.get(AGENT_STREAK)
    if isinstance(streak, int) and streak >= STREAK:
        parts.append(_STREAK.format(number=streak))
    return "\n".join(parts)


def _quoted(answered: Any) -> str:
    if not isinstance(answered, dict) or not isinstance(answered.get("content"), str):
        return ""
    author = str(answered.get("author") or "somebody")[:QUOTE_CUT]
    text = " ".join(answered["content"].split())
    cut = text[:QUOTE_CUT] + ("…" if len(text) > QUOTE_CUT else "")
    return f'It answers what {author} wrote: "{cut}"'
