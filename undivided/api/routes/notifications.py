"""Notifications: what people were told, and that they have seen it."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from undivided.api.answers import answer, token_or
from undivided.api.asked import (
    choice_of,
    cursor_for,
    cursor_of,
    limit_of,
    names_of,
    raw_body,
    reading_of,
    whole_number,
)
from undivided.api.once import Claim, once
from undivided.api.parts import Parts, parts_of
from undivided.api.routes.records import LARGEST_OFFSET
from undivided.api.shapes.people import NotificationPage, ReadMark, notification_shape
from undivided.domain.endings import OWNER
from undivided.domain.errors import Invalid
from undivided.domain.notifications import checked_user, notification_type
from undivided.store.commands import notifications as commands
from undivided.store.commands.notifications import Marked
from undivided.store.queries import people as queries
from undivided.store.queries.people import Place, WantedNotifications
from undivided.store.queries.reading import Reading

router = APIRouter(prefix="/api/notifications", tags=["people"])


@router.get("")
async def list_notifications(request: Request) -> Response:
    """What one person was told, and everybody with them, newest first; `userId` says who asks."""
    reading = await reading_of(request, parts_of(request).database)
    kinds = names_of(request, "type")
    for name in kinds or ():
        notification_type(name)
    unread = choice_of(request, "unread", ("false", "true")) == "true"
    unread = unread or choice_of(request, "unreadOnly", ("false", "true")) == "true"
    wanted = WantedNotifications(
        user_id=user_of(request),
        kinds=kinds or None,
        unread=unread,
        before=cursor_of(request, Place),
        offset=whole_number(request, "offset", 0, 0, LARGEST_OFFSET),
        limit=limit_of(request),
    )
    found = await queries.notifications(reading, wanted)
    shown = [notification_shape(one) for one in found.page]
    return answer(
        NotificationPage(
            items=shown,
            notifications=shown,
            total_count=found.total,
            unread_count=found.unread,
            next_cursor=None if found.end is None else cursor_for(found.end),
            position=await reading.seen(),
        )
    )


@router.post("/mark-all-read")
@router.post("/read-all", include_in_schema=False)
async def read_all_notifications(request: Request) -> Response:
    """Everything that a person was told has been seen; answers how much had not been."""
    parts, raw = parts_of(request), await no_body(request)
    user_id = user_of(request)

    async def effect(claim: Claim) -> Response:
        return await _told(parts, await commands.mark_all_read(parts.outlet, user_id, claim.meta))

    return await once(request, raw, effect)


@router.post("/{notification_id}/read")
async def read_notification(request: Request, notification_id: str) -> Response:
    """One notification has been seen; a second time changes nothing."""
    parts, raw = parts_of(request), await no_body(request)

    async def effect(claim: Claim) -> Response:
        done = await commands.mark_read(parts.outlet, notification_id, claim.meta)
        return await _told(parts, done)

    return await once(request, raw, effect)


def user_of(request: Request) -> str:
    """Whose notifications are meant: `userId`, or else the owner's.

    Raises:
        Invalid: no name of anybody.
    """
    return checked_user(request.query_params.get("userId", OWNER))


async def no_body(request: Request) -> bytes:
    """The body of a command that takes none."""
    raw = await raw_body(request)
    if raw.strip() not in {b"", b"{}"}:
        raise Invalid("this command takes no body", "body")
    return raw


async def _told(parts: Parts, done: Marked) -> Response:
    seen = "" if done.coordinate else await Reading(parts.database).seen()
    mark = ReadMark(success=True, count=done.count, position=token_or(done.coordinate, seen))
    return answer(mark)
