"""What agents know for good."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Request, Response
from msgspec import Meta

from undivided.api.answers import answer
from undivided.api.asked import cursor_for, cursor_of, limit_of, reading_of
from undivided.api.parts import parts_of
from undivided.api.shapes.knowledge import KnowledgeList, knowledge_shape
from undivided.domain.errors import Invalid
from undivided.domain.memory import QUERY_CHARS
from undivided.store.queries.knowledge import KINDS, Sought, knowledge

Passed = Annotated[int, Meta(ge=0, le=2**31 - 1)]
"""How many of what is listed the pages before have shown."""

router = APIRouter(prefix="/api/agents", tags=["agents"])


@router.get("/{agent_id}/knowledge")
async def list_knowledge(request: Request, agent_id: str) -> Response:
    """What the agent knows for good; with `q` what fits these words best."""
    reading = await reading_of(request, parts_of(request).database)
    kind = request.query_params.get("kind")
    if kind is not None and kind not in KINDS:
        raise Invalid(f"kind must be of {', '.join(KINDS)}; got {kind!r}", "kind")
    kinds = tuple(one for one in KINDS if kind in (None, one))
    words, limit = request.query_params.get("q", ""), limit_of(request)
    if len(words) > QUERY_CHARS:
        raise Invalid(f"q has {len(words)} characters, at most {QUERY_CHARS} are taken", "q")
    skip = cursor_of(request, Passed) or 0
    rows = await knowledge(reading, agent_id, Sought(kinds, words, limit + 1, skip))
    return answer(
        KnowledgeList(
            items=[knowledge_shape(row) for row in rows[:limit]],
            next_cursor=cursor_for(skip + limit) if len(rows) > limit else None,
            position=await reading.seen(),
        )
    )
