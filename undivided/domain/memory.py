"""What an agent keeps in mind, and what it knows for good.

Working memory is a few short entries that every prompt shows. Knowledge lasts: notes that are
found again by their words, and sections that every prompt shows as well, so that they are bounded.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from undivided.domain.events.agents import (
    KnowledgeKind,
    KnowledgeRemoved,
    KnowledgeSaved,
    MemoryCleared,
)
from undivided.domain.state.agent import KnowledgeRow
from undivided.domain.tooling import Act

SECTION_CHARS, SECTIONS_CHARS = 3_000, 15_000
NOTE_CHARS = 15_000
KEY_CHARS = 128
FOUND_AT_MOST = 20
QUERY_CHARS = 1_000
"""Of a search's words, at most; Postgres refuses to compile very long ones."""


class NoteMemory(Act, frozen=True):
    """Keep something in mind under a key."""

    key: str
    content: str


class ClearMemory(Act, frozen=True):
    """Forget one entry that the agent keeps itself, or with None all of them."""

    key: str | None


class SaveKnowledge(Act, frozen=True):
    """Know something for good; a section is what every prompt shows."""

    kind: KnowledgeKind
    key: str
    content: str


class RemoveKnowledge(Act, frozen=True):
    """Know it no more."""

    kind: KnowledgeKind
    key: str


class SearchKnowledge(Act, frozen=True):
    """Find what is known by its words; without any, what was saved last."""

    kind: KnowledgeKind
    words: str
    limit: int


def cleared(
    agent_id: str, own: tuple[str, ...], key: str | None, turn_id: str
) -> MemoryCleared | None:
    """Forget entries that the agent keeps itself, `own`; None if there is nothing to forget."""
    keys = own if key is None else tuple(one for one in own if one == key)
    return MemoryCleared(agent_id=agent_id, keys=keys, turn_id=turn_id) if keys else None


def saved(
    agent_id: str, act: SaveKnowledge, held: Mapping[str, int], turn_id: str | None
) -> KnowledgeSaved | str:
    """Save knowledge; `held` are the characters of each section there is. Else why not."""
    length = len(act.content)
    if act.kind == "note" and length > NOTE_CHARS:
        return f"a note has at most {NOTE_CHARS} characters; this one has {length}"
    if act.kind == "section":
        others = sum(chars for key, chars in held.items() if key != act.key)
        if length > SECTION_CHARS:
            return f"a section has at most {SECTION_CHARS} characters; this one has {length}"
        if others + length > SECTIONS_CHARS:
            return (
                f"all sections together have at most {SECTIONS_CHARS} characters; the others "
                f"have {others}, this one {length}: shorten some first"
            )
    return KnowledgeSaved(
        agent_id=agent_id, kind=act.kind, key=act.key, content=act.content, turn_id=turn_id
    )


def removed(agent_id: str, act: RemoveKnowledge, turn_id: str) -> KnowledgeRemoved:
    """Remove knowledge that is there."""
    return KnowledgeRemoved(agent_id=agent_id, kind=act.kind, key=act.key, turn_id=turn_id)


def told(**facts: Any) -> str:
    """What a model reads about its memory."""
    return json.dumps({key: value for key, value in facts.items() if value is not None},
                      ensure_ascii=False)  # fmt: skip


def found(rows: tuple[KnowledgeRow, ...]) -> str:
    """What a search answers."""
    return told(
        status="ok",
        results=[
            {"key": row.key, "content": row.content, "savedAt": row.saved_at.isoformat()}
            for row in rows
        ],
    )
