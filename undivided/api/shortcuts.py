"""The hottest calls, found first and called directly.

FastAPI looks at every route in turn and solves each endpoint's parameters anew; for these few
calls that costs as much as their work. They stay described like all others: a shortcut is the
same function on the same path.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from fastapi import Request, Response
from starlette.routing import Route

from undivided.api.routes.items import get_item
from undivided.api.routes.mailbox import put_stimulus
from undivided.api.routes.records import get_mailbox, get_mind

Handler = Callable[[Request, str], Awaitable[Response]]


def shortcuts() -> list[Route]:
    """Routes to be tried before all others."""
    return [
        _shortcut("POST", "/api/agents/{id}/mailbox", put_stimulus),
        _shortcut("GET", "/api/agents/{id}/mind", get_mind),
        _shortcut("GET", "/api/agents/{id}/mailbox", get_mailbox),
        _shortcut("GET", "/api/items/{id}", get_item),
    ]


def _shortcut(method: str, path: str, handler: Handler) -> Route:
    async def call(request: Request) -> Response:
        return await handler(request, request.path_params["id"])

    return Route(path, call, methods=[method], include_in_schema=False)
