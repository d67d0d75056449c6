"""Talking to an agent: say something, and wait for the reply or watch it being written."""

from __future__ import annotations

import asyncio

import msgspec
from fastapi import APIRouter, Request, Response
from msgspec import UNSET

from undivided.api.answers import answer
from undivided.api.asked import parsed, raw_body, restored, seconds
from undivided.api.bodies import NewMessage
from undivided.api.once import Claim, once
from undivided.api.parts import Parts, parts_of
from undivided.api.routes.mailbox import known
from undivided.api.shapes.accepted import MessageAnswer
from undivided.api.shapes.items import times_of
from undivided.api.sse import streamed, wants_stream
from undivided.api.telling import reply_of, told
from undivided.domain.coordinates import parse_coordinate
from undivided.domain.errors import Invalid, NotFound
from undivided.domain.events.items import Payload, Sender
from undivided.domain.interrupts import STREAMED
from undivided.domain.mailbox import Accept
from undivided.domain.state.item import TERMINAL
from undivided.domain.stimuli import HUMAN_CHAT
from undivided.store.commands.accepting import accept_stimuli
from undivided.store.conversing import Followed, item_followed
from undivided.store.hints import TAIL
from undivided.store.queries import items
from undivided.store.queries.items import ItemThen
from undivided.store.queries.reading import Reading

router = APIRouter(prefix="/api/agents", tags=["messages"])
LONGEST_WAIT_S = 600.0
POLL_S = 1.0


@router.post("/{agent_id}/messages", status_code=202)
async def say(request: Request, agent_id: str) -> Response:
    """Say something to an agent.

    With `wait=` seconds: 200 with the reply once the turn is over, 202 if it is not over by then.
    With `Accept: text/event-stream`: the turn as it goes on; `Last-Event-ID` attaches again to
    a message that was sent before, whatever the body says, and sends nothing twice.
    """
    parts, streaming = parts_of(request), wants_stream(request)
    seen = request.headers.get("last-event-id")
    if streaming and seen is not None:
        return streamed(told(parts, await _attached(parts, agent_id, seen)))
    wait_s = seconds(request, "wait", LONGEST_WAIT_S)
    accepted = await _accepted(request, parts, agent_id)
    if streaming:
        return streamed(told(parts, _followed(agent_id, accepted), accepted))
    if wait_s == 0 or accepted.session_id is None:
        return answer(accepted, 202)
    return await _answered(parts, agent_id, accepted, wait_s)


async def _accepted(request: Request, parts: Parts, agent_id: str) -> MessageAnswer:
    raw = await raw_body(request)
    body, escaped = parsed(raw, NewMessage)
    text = restored(body.text) if escaped else body.text
    watched: dict[str, object] = {STREAMED: True} if wants_stream(request) else {}

    async def effect(claim: Claim) -> Response:
        command = Accept(
            item_id=claim.fresh_id("mbx"),
            source_type=HUMAN_CHAT,
            payload=Payload(content=text, extra=watched),
            sender=Sender(body.sender_id, body.sender_name, "user"),
            session_id=body.session_id,
        )
        done = await accept_stimuli(
            parts.outlet, known(agent_id), (command,), claim.meta, claim.earlier
        )
        said = MessageAnswer(
            item_id=done.items[0].id,
            session_id=done.sessions[0],
            position=str(done.coordinate),
        )
        return answer(said, 202)

    told_before = await once(request, raw, effect)
    return msgspec.json.decode(told_before.body, type=MessageAnswer)


async def _answered(
    parts: Parts, agent_id: str, accepted: MessageAnswer, wait_s: float
) -> Response:
    """Look at the item whenever something happens to its agent, and once a second."""
    clock = asyncio.get_running_loop().time
    until = clock() + wait_s
    async with parts.hints.subscribe(TAIL, agent_id.encode()) as news:
        while True:
            then = await items.item(Reading(parts.database), accepted.item_id)
            into = await items.survivor(Reading(parts.database), then)
            over = times_of(into.item).status in TERMINAL
            left = until - clock()
            if over or left <= 0 or parts.leaving.is_set():
                return answer(_reply(accepted, into), 200 if over else 202)
            await news.next(within_s=min(left, POLL_S))


def _reply(accepted: MessageAnswer, then: ItemThen) -> MessageAnswer:
    times = times_of(then.item)
    session_id = then.activities[-1].session_id if then.activities else accepted.session_id
    return MessageAnswer(
        item_id=accepted.item_id,
        session_id=session_id,
        position=then.position,
        status=times.status,
        reply=reply_of(then.item) if times.outcome else UNSET,
        outcome=times.outcome or UNSET,
        turn_id=times.turn_id or UNSET,
        merged_into=then.item.id if then.item.id != accepted.item_id else UNSET,
    )


def _followed(agent_id: str, accepted: MessageAnswer) -> Followed:
    place = parse_coordinate(accepted.position)
    return Followed(agent_id, accepted.item_id, accepted.session_id or "", place)


async def _attached(parts: Parts, agent_id: str, seen: str) -> Followed:
    """What a stream was about, from the last event that its reader saw of it."""
    try:
        place = parse_coordinate(seen)
    except Invalid as error:
        raise Invalid(str(error), "Last-Event-ID") from error
    found = await item_followed(parts.database, known(agent_id), place)
    if found is None:
        raise NotFound(f"{seen} is no event of a message to agent {agent_id[:128]}")
    return found
