"""The log itself: events in order, what caused them, and a stream without end."""

from __future__ import annotations

from collections.abc import AsyncIterator

from fastapi import APIRouter, Request, Response

from undivided.api.answers import answer
from undivided.api.asked import limit_of, names_of, reading_of
from undivided.api.parts import Parts, parts_of
from undivided.api.shapes.events import EventPage, event_shape
from undivided.api.sse import HEARTBEAT, frame, streamed
from undivided.domain.coordinates import ORIGIN, Coordinate, parse_coordinate
from undivided.domain.errors import Invalid
from undivided.store.following import follow
from undivided.store.horizon import BadCoordinate, horizon, resolve
from undivided.store.queries import events as queries
from undivided.store.tail import Logged, Wanted, read_tail

router = APIRouter(prefix="/api/events", tags=["events"])
END_OF_TIME = Wanted().until


@router.get("")
async def list_events(request: Request) -> Response:
    """Events in the order of the log, from behind `after=` on."""
    parts = parts_of(request)
    reading = await reading_of(request, parts.database)
    after, limit = await _after(request, parts), limit_of(request)
    wanted = _wanted(request, reading.at or END_OF_TIME)
    page = await read_tail(parts.database, after, wanted, rows=limit)
    end = str(page.end)
    return answer(_page(page.events, end if page.full else None, end))


@router.get("/stream")
async def stream_events(request: Request) -> Response:
    """Server-sent events from behind `after=` (or `Last-Event-ID`) on, for ever.

    `event:` is the event's type, `id:` its coordinate. Without either, everything from now on.
    """
    parts = parts_of(request)
    after = await _after(request, parts, now=True)
    return streamed(_frames(parts, after, _wanted(request, END_OF_TIME)))


@router.get("/{event_id}")
async def get_event(request: Request, event_id: str) -> Response:
    """One event."""
    reading = await reading_of(request, parts_of(request).database)
    return answer(event_shape(await queries.event(reading, event_id)))


@router.get("/{event_id}/causes")
async def list_causes(request: Request, event_id: str) -> Response:
    """What caused it, nearest first, back to where the story began."""
    reading = await reading_of(request, parts_of(request).database)
    chain = await queries.causes(reading, event_id)
    return answer(_page(chain, None, await reading.seen()))


@router.get("/{event_id}/effects")
async def list_effects(request: Request, event_id: str) -> Response:
    """What it caused directly, in order."""
    reading = await reading_of(request, parts_of(request).database)
    cursor, limit = request.query_params.get("cursor"), limit_of(request)
    after = ORIGIN if cursor is None else _coordinate(cursor, "cursor")
    page, more = await queries.effects(reading, event_id, after, limit)
    end = str(page[-1].coordinate) if more and page else None
    return answer(_page(page, end, await reading.seen()))


def _page(events: list[Logged], end: str | None, position: str) -> EventPage:
    shown = [event_shape(one) for one in events]
    return EventPage(items=shown, next_cursor=end, position=position)


async def _frames(parts: Parts, after: Coordinate, wanted: Wanted) -> AsyncIterator[bytes]:
    yield HEARTBEAT
    async for events in follow(parts.database, parts.hints, after, wanted, parts.leaving):
        if not events:
            yield HEARTBEAT
        for one in events:
            yield frame(one.type, event_shape(one), str(one.coordinate))


async def _after(request: Request, parts: Parts, now: bool = False) -> Coordinate:
    """Where to begin: the newest of what the request names, else the log's beginning or `now`."""
    query = request.query_params
    for name, text in (
        ("Last-Event-ID", request.headers.get("last-event-id")),
        ("cursor", query.get("cursor")),
        ("after", query.get("after")),
    ):
        if text is None:
            continue
        if name == "after" and ":" in text:
            return await resolve(parts.database, text)
        return await _known(parts, _coordinate(text, name), name)
    if not now:
        return ORIGIN
    return Coordinate((await horizon(parts.database)).settled, 0)


async def _known(parts: Parts, place: Coordinate, field: str) -> Coordinate:
    if place.txid >= (await horizon(parts.database)).begun:
        raise BadCoordinate(
            "position_from_the_future", f"the log has not come to {place} yet", field
        )
    return place


def _wanted(request: Request, until: Coordinate) -> Wanted:
    return Wanted(streams=names_of(request, "stream"), types=names_of(request, "type"), until=until)


def _coordinate(text: str, field: str) -> Coordinate:
    try:
        return parse_coordinate(text)
    except Invalid as error:
        raise Invalid(str(error), field) from error
