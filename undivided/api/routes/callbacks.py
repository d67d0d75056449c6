"""Callbacks and wakeups: what agents will hear of later, and taking a wakeup back."""

from __future__ import annotations

from typing import get_args

from fastapi import APIRouter, Request, Response

from undivided.api.answers import answer
from undivided.api.asked import cursor_for, cursor_of, limit_of, names_of, raw_body, reading_of
from undivided.api.once import Claim, once
from undivided.api.parts import parts_of
from undivided.api.routes.mailbox import known
from undivided.api.shapes.callbacks import CallbackPage, CancelledWakeup, callback_shape
from undivided.domain.errors import Invalid, NotFound
from undivided.domain.events.callbacks import CallbackType
from undivided.domain.ids import checked_id
from undivided.store.commands.callbacks import cancel_wakeup
from undivided.store.queries import callbacks as queries
from undivided.store.queries.callbacks import Place, WantedCallbacks

router = APIRouter(prefix="/api", tags=["agents"])
STATUSES = ("pending", "timed_out", "resolved", "cancelled")
TYPES = get_args(CallbackType)


@router.get("/callbacks")
async def list_callbacks(request: Request) -> Response:
    """What agents will hear of later, or have heard, newest first; of one with `agentId=`."""
    reading = await reading_of(request, parts_of(request).database)
    wanted = WantedCallbacks(
        agent_id=request.query_params.get("agentId"),
        kinds=_of(request, "type", TYPES),
        statuses=_of(request, "status", STATUSES),
        before=cursor_of(request, Place),
        limit=limit_of(request),
    )
    page, end = await queries.callbacks(reading, wanted)
    return answer(
        CallbackPage(
            items=[callback_shape(row) for row in page],
            next_cursor=None if end is None else cursor_for(end),
            position=await reading.seen(),
        )
    )


@router.delete("/agents/{agent_id}/wakeups/{wakeup_id}")
async def delete_wakeup(request: Request, agent_id: str, wakeup_id: str) -> Response:
    """Take a wakeup back that is still to come."""
    parts, raw = parts_of(request), await raw_body(request)

    async def effect(claim: Claim) -> Response:
        try:
            checked_id(wakeup_id, "wakeupId")
        except Invalid:
            raise NotFound(f"there is no wakeup {wakeup_id[:128]!r}") from None
        await cancel_wakeup(parts.outlet, known(agent_id), wakeup_id, claim.meta)
        return answer(CancelledWakeup(cancelled=True, wakeup_id=wakeup_id))

    return await once(request, raw, effect)


def _of(request: Request, name: str, allowed: tuple[str, ...]) -> list[str] | None:
    names = list(names_of(request, name) or ())
    for one in names:
        if one not in allowed:
            raise Invalid(f"{name} must be of {', '.join(allowed)}; got {one!r}", name)
    return names or None
