"""Approvals: what agents asked people, and the answers."""

from __future__ import annotations

from typing import get_args

from fastapi import APIRouter, Request, Response

from undivided.api.answers import answer
from undivided.api.asked import (
    cursor_for,
    cursor_of,
    limit_of,
    names_of,
    parsed,
    raw_body,
    reading_of,
    restored,
)
from undivided.api.bodies import ApprovalAnswer
from undivided.api.once import Claim, once
from undivided.api.parts import parts_of
from undivided.api.shapes.people import ApprovalPage, approval_shape
from undivided.domain.approvals import Answer
from undivided.domain.errors import Invalid, Rejected
from undivided.store.commands import approvals as commands
from undivided.store.queries import people as queries
from undivided.store.queries.people import ApprovalStatus, Place, WantedApprovals
from undivided.store.queries.reading import Reading

router = APIRouter(prefix="/api/approvals", tags=["people"])
STATUSES = get_args(ApprovalStatus)


@router.get("")
async def list_approvals(request: Request) -> Response:
    """What people were asked, newest first; of one agent with `agentId=`."""
    reading = await reading_of(request, parts_of(request).database)
    statuses = names_of(request, "status")
    for status in statuses or ():
        if status not in STATUSES:
            raise Invalid(f"status must be of {', '.join(STATUSES)}; got {status!r}", "status")
    wanted = WantedApprovals(
        agent_id=request.query_params.get("agentId"),
        user_id=request.query_params.get("userId"),
        statuses=statuses or None,
        before=cursor_of(request, Place),
        limit=limit_of(request),
    )
    page, end = await queries.approvals(reading, wanted)
    return answer(
        ApprovalPage(
            items=[approval_shape(one) for one in page],
            next_cursor=None if end is None else cursor_for(end),
            position=await reading.seen(),
        )
    )


@router.get("/{approval_id}")
async def get_approval(request: Request, approval_id: str) -> Response:
    """One request for approval, and what has become of it."""
    reading = await reading_of(request, parts_of(request).database)
    return answer(approval_shape(await queries.approval(reading, approval_id)))


@router.post("/{approval_id}")
async def answer_approval(request: Request, approval_id: str) -> Response:
    """Answer a request, once; the turn that waits for it goes on."""
    parts, raw = parts_of(request), await raw_body(request)
    body, escaped = parsed(raw, ApprovalAnswer)
    comment = (restored(body.comment) if escaped else body.comment) or ""

    async def effect(claim: Claim) -> Response:
        given = Answer(body.approved, body.selected_option, comment, claim.meta.actor)
        try:
            done = await commands.answer(parts.outlet, approval_id, given, claim.meta)
            position = str(done.coordinate)
        except Rejected as refusal:
            if refusal.code != "approval_answered" or not await claim.took_effect():
                raise
            position = None
        then = await queries.approval(Reading(parts.database), approval_id)
        return answer(approval_shape(then, position))

    return await once(request, raw, effect)
