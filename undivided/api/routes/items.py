"""Items: what became of one stimulus."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from undivided.api.answers import answer
from undivided.api.asked import reading_of
from undivided.api.parts import parts_of
from undivided.api.shapes.items import item_shape
from undivided.store.queries import items as queries

router = APIRouter(prefix="/api/items", tags=["items"])


@router.get("/{item_id}")
async def get_item(request: Request, item_id: str) -> Response:
    """One item, whole."""
    reading = await reading_of(request, parts_of(request).database)
    return answer(item_shape(await queries.item(reading, item_id)))
