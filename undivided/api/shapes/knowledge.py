"""What an agent knows for good, as the API shows it."""

from __future__ import annotations

from msgspec import Struct

from undivided.api.answers import instant
from undivided.domain.events.agents import KnowledgeKind
from undivided.domain.state.agent import KnowledgeRow


class Knowledge(Struct, frozen=True, rename="camel", kw_only=True):
    """A note, found by its words; or a section of what the agent always has in mind."""

    kind: KnowledgeKind
    key: str
    content: str
    saved_at: str


class KnowledgeList(Struct, frozen=True, rename="camel", kw_only=True):
    """What was found, the best match first; without words the newest."""

    items: list[Knowledge]
    next_cursor: str | None
    position: str


def knowledge_shape(row: KnowledgeRow) -> Knowledge:
    """How something known is shown."""
    return Knowledge(
        kind=row.kind, key=row.key, content=row.content, saved_at=instant(row.saved_at)
    )
