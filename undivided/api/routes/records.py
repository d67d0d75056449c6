"""An agent's mind, mailbox, decisions and activities."""

from __future__ import annotations

from typing import get_args

from fastapi import APIRouter, Request, Response

from undivided.api.answers import answer
from undivided.api.asked import (
    choice_of,
    cursor_for,
    cursor_of,
    limit_of,
    names_of,
    reading_of,
    whole_number,
)
from undivided.api.parts import parts_of
from undivided.api.shapes.events import event_shape
from undivided.api.shapes.mind import mailbox_shape, mind_shape
from undivided.api.shapes.records import (
    ActivityLog,
    ActivityPage,
    ActivityStep,
    DecisionPage,
    activity_shape,
    decision_shape,
)
from undivided.domain.errors import Invalid
from undivided.domain.stimuli import Category, stimulus_type
from undivided.store.queries import mailbox as mailboxes
from undivided.store.queries import mind as minds
from undivided.store.queries import records
from undivided.store.queries.mailbox import Wanted
from undivided.store.queries.records import ActivityPlace
from undivided.store.tail import Logged

router = APIRouter(prefix="/api/agents", tags=["agents"])
STATUSES = ("queued", "processing", "completed", "cancelled", "dead_letter", "deferred", "merged",
            "dropped", "superseded", "leased")  # fmt: skip
LARGEST_OFFSET = 100_000_000


@router.get("/{agent_id}/mind")
async def get_mind(request: Request, agent_id: str) -> Response:
    """What the agent attends to, what waits, what it decided lately, what it remembers."""
    reading = await reading_of(request, parts_of(request).database)
    return answer(mind_shape(await minds.mind(reading, agent_id)))


@router.get("/{agent_id}/mailbox")
async def get_mailbox(request: Request, agent_id: str) -> Response:
    """The mailbox: what waits, and the history, newest first.

    `type` (or `sourceType`), `category` and `status` choose from the history; `type` wins over
    `category`. With `counts=sourceType` the items of each type are counted.
    """
    reading = await reading_of(request, parts_of(request).database)
    wanted = _wanted(request)
    box = await mailboxes.mailbox(reading, agent_id, wanted)
    more = len(box.history) > wanted.limit
    end = cursor_for(box.history[wanted.limit - 1].seq) if more else None
    return answer(mailbox_shape(box, wanted, end))


def _wanted(request: Request) -> Wanted:
    query = request.query_params
    types, category = names_of(request, "type") or names_of(request, "sourceType"), None
    for name in types or ():
        stimulus_type(name)
    statuses = names_of(request, "status")
    for status in statuses or ():
        if status not in STATUSES:
            raise Invalid(f"status must be of {', '.join(STATUSES)}; got {status!r}", "status")
    if not types and "category" in query:
        category, known = query["category"], get_args(Category)
        if category not in known:
            raise Invalid(f"category must be of {', '.join(known)}", "category")
    return Wanted(
        limit=limit_of(request),
        offset=whole_number(request, "offset", 0, 0, LARGEST_OFFSET),
        before=cursor_of(request, int) or Wanted().before,
        types=types or None,
        category=category,
        statuses=statuses or None,
        by_type=choice_of(request, "counts", ("none", "sourceType")) == "sourceType",
    )


@router.get("/{agent_id}/decisions")
async def list_decisions(request: Request, agent_id: str) -> Response:
    """What the agent's attention chose, newest first, with rule, inputs and losers."""
    reading = await reading_of(request, parts_of(request).database)
    await records.check_agent(reading, agent_id)
    before, limit = cursor_of(request, int), limit_of(request)
    page, end = await records.decisions(reading, agent_id, before, limit)
    return answer(
        DecisionPage(
            items=[decision_shape(then) for then in page],
            next_cursor=None if end is None else cursor_for(end),
            position=await reading.seen(),
        )
    )


@router.get("/{agent_id}/activities")
async def list_activities(request: Request, agent_id: str) -> Response:
    """What the agent did, newest first; with `type` only these kinds of activity."""
    reading = await reading_of(request, parts_of(request).database)
    await records.check_agent(reading, agent_id)
    before, limit = cursor_of(request, ActivityPlace), limit_of(request)
    types = names_of(request, "type") or None
    page, end = await records.activities(reading, agent_id, before, limit, types)
    return answer(
        ActivityPage(
            items=[activity_shape(row) for row in page],
            next_cursor=None if end is None else cursor_for(end),
            position=await reading.seen(),
        )
    )


@router.get("/{agent_id}/activity-logs")
async def list_activity_logs(request: Request, agent_id: str) -> Response:
    """The steps of one activity, in order; which one is said by `activityId`."""
    reading = await reading_of(request, parts_of(request).database)
    activity_id = request.query_params.get("activityId")
    if not activity_id:
        raise Invalid("say which activity with activityId=", "activityId")
    after, limit = cursor_of(request, int) or 0, limit_of(request)
    await records.check_agent(reading, agent_id)
    activity = await records.activity(reading, agent_id, activity_id)
    page, more = await records.steps(reading, activity_id, after, limit)
    return answer(
        ActivityLog(
            activity=activity_shape(activity),
            items=[_step(one) for one in page],
            next_cursor=cursor_for(page[-1].version) if more and page else None,
            position=await reading.seen(),
        )
    )


def _step(one: Logged) -> ActivityStep:
    shown = event_shape(one)
    data = shown.data
    said = next((data[key] for key in ("input", "text", "content", "tool") if data.get(key)), "")
    return ActivityStep(
        id=shown.id, seq=shown.version, type=shown.type, content=said, metadata=data,
        created_at=shown.recorded_at, position=shown.position,
    )  # fmt: skip
