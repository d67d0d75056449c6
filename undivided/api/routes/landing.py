"""The front door: what this is, whether it is well, and where to go on."""

from __future__ import annotations

from importlib import resources

from fastapi import APIRouter, Response

router = APIRouter(include_in_schema=False)


@router.get("/")
async def landing() -> Response:
    """A plain page for whoever opens the address in a browser."""
    page = (resources.files("undivided.api") / "landing.html").read_text("utf-8")
    return Response(page, media_type="text/html; charset=utf-8")
