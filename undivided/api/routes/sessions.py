"""Sessions: conversations and their transcripts."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from undivided.api.answers import answer
from undivided.api.asked import (
    choice_of,
    cursor_for,
    cursor_of,
    limit_of,
    principal,
    raw_body,
    reading_of,
)
from undivided.api.once import Claim, once
from undivided.api.parts import Parts, parts_of
from undivided.api.shapes.sessions import (
    MessagePage,
    SessionPage,
    message_shape,
    session_shape,
)
from undivided.domain.recorded import Meta
from undivided.store.commands import sessions as commands
from undivided.store.queries import messages as transcripts
from undivided.store.queries import sessions as queries
from undivided.store.queries.reading import Reading
from undivided.store.queries.sessions import SessionPlace

router = APIRouter(prefix="/api/sessions", tags=["sessions"])


@router.get("")
async def list_sessions(request: Request) -> Response:
    """Sessions, oldest first; of one agent with `agentId=`."""
    reading = await reading_of(request, parts_of(request).database)
    page, end = await queries.sessions(
        reading,
        request.query_params.get("agentId"),
        cursor_of(request, SessionPlace),
        limit_of(request),
    )
    return answer(
        SessionPage(
            items=[session_shape(then) for then in page],
            next_cursor=None if end is None else cursor_for(end),
            position=await reading.seen(),
        )
    )


@router.get("/{session_id}")
async def get_session(request: Request, session_id: str) -> Response:
    """One session."""
    reading = await reading_of(request, parts_of(request).database)
    return answer(session_shape(await queries.session(reading, session_id)))


@router.get("/{session_id}/messages")
async def list_messages(request: Request, session_id: str) -> Response:
    """The transcript, in order; `visibility=all` shows also what only a provider sees."""
    reading = await reading_of(request, parts_of(request).database)
    hidden_too = choice_of(request, "visibility", ("visible", "all")) == "all"
    after = cursor_of(request, int) or 0
    limit = limit_of(request)
    await queries.session(reading, session_id)
    page, more = await transcripts.messages(reading, session_id, after, limit, hidden_too)
    return answer(
        MessagePage(
            items=[message_shape(message) for message in page],
            next_cursor=cursor_for(page[-1].version) if more and page else None,
            position=await reading.seen(),
        )
    )


@router.post("/{session_id}/stop")
async def stop_session(request: Request, session_id: str) -> Response:
    """Ask the turn at work to end at its next safe point; without one nothing happens."""
    parts, raw = parts_of(request), await raw_body(request)
    await queries.session(Reading(parts.database), session_id)

    async def effect(claim: Claim) -> Response:
        done = await commands.stop_turn(parts.outlet, session_id, claim.meta)
        return await _told(parts, session_id, done)

    return await once(request, raw, effect)


@router.post("/{session_id}/archive")
async def archive_session(request: Request, session_id: str) -> Response:
    """Let a session take no more stimuli; it can still be read."""
    parts, raw = parts_of(request), await raw_body(request)
    await queries.session(Reading(parts.database), session_id)

    async def effect(claim: Claim) -> Response:
        done = await commands.end(parts.outlet, session_id, "archived", claim.meta)
        return await _told(parts, session_id, done)

    return await once(request, raw, effect)


@router.delete("/{session_id}")
async def delete_session(request: Request, session_id: str) -> Response:
    """Take a session away from its users; its history stays."""
    parts = parts_of(request)
    then = await queries.session(Reading(parts.database), session_id)
    meta = Meta(actor=principal(request))
    done = await commands.end(parts.outlet, session_id, "deleted", meta)
    position = str(done.coordinate or then.position)
    gone = queries.SessionThen(done.session, then.revision + 1, position, then.pending)
    return answer(session_shape(gone))


async def _told(parts: Parts, session_id: str, done: commands.SessionCommanded) -> Response:
    then = await queries.session(Reading(parts.database), session_id)
    return answer(session_shape(then, str(done.coordinate) if done.coordinate else None))
