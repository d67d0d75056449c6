"""Items: what became of one stimulus."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from undivided.api.answers import answer
from undivided.api.asked import reading_of
from undivided.api.parts import parts_of
from undivided.api.shapes.items import item_shape
from undivided.api.shapes.why import why_shape
from undivided.store.queries import items as queries
from undivided.store.queries.why import why

router = APIRouter(prefix="/api/items", tags=["items"])


@router.get("/{item_id}")
async def get_item(request: Request, item_id: str) -> Response:
    """One item, whole."""
    reading = await reading_of(request, parts_of(request).database)
    return answer(item_shape(await queries.item(reading, item_id)))


@router.get("/{item_id}/why")
async def get_why(request: Request, item_id: str) -> Response:
    """An item's whole story: what became of it, by which decisions, and what passed it over."""
    reading = await reading_of(request, parts_of(request).database)
    return answer(why_shape(await why(reading, item_id)))
