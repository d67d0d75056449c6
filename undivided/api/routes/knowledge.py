"""What agents know for good."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from undivided.api.answers import answer
from undivided.api.asked import limit_of, reading_of
from undivided.api.parts import parts_of
from undivided.api.shapes.knowledge import KnowledgeList, knowledge_shape
from undivided.domain.errors import Invalid
from undivided.store.queries.knowledge import KINDS, Sought, knowledge

router = APIRouter(prefix="/api/agents", tags=["agents"])


@router.get("/{agent_id}/knowledge")
async def list_knowledge(request: Request, agent_id: str) -> Response:
    """What the agent knows for good; with `q` what fits these words best."""
    reading = await reading_of(request, parts_of(request).database)
    kind = request.query_params.get("kind")
    if kind is not None and kind not in KINDS:
        raise Invalid(f"kind must be of {', '.join(KINDS)}; got {kind!r}", "kind")
    kinds = tuple(one for one in KINDS if kind in (None, one))
    sought = Sought(kinds, request.query_params.get("q", ""), limit_of(request))
    rows = await knowledge(reading, agent_id, sought)
    items = [knowledge_shape(row) for row in rows]
    return answer(KnowledgeList(items=items, position=await reading.seen()))
