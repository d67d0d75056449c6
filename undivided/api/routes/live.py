"""The WebSocket: what happens, as it happens, to whoever listens.

A frame is `{type, payload, timestamp}`, the first one `connected`. `agentId` in the address, or a
message `{"subscribe": ["agt_1"]}`, chooses agents; without either, all are told of. `userId` says
whose notifications are told. Nothing of the database is held while nobody has anything to say.
"""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

from fastapi import APIRouter, WebSocket
from starlette.websockets import WebSocketDisconnect

from undivided.api.answers import encoded, instant
from undivided.api.live import Frame, Heard, Listener, agent_of, frames
from undivided.api.parts import Parts
from undivided.domain.coordinates import Coordinate
from undivided.domain.endings import OWNER
from undivided.domain.errors import Invalid, Unavailable
from undivided.domain.notifications import checked_user
from undivided.store.database import Database
from undivided.store.following import follow
from undivided.store.horizon import horizon
from undivided.store.queries.agents import depths_of
from undivided.store.queries.reading import Reading
from undivided.store.tail import EVERYTHING, Logged

log = logging.getLogger(__name__)
router = APIRouter()
GONE = (WebSocketDisconnect, RuntimeError)
"""What sending to a client that has left is refused with."""
LEAVING, REFUSED, BROKEN, TRY_LATER = 1001, 1008, 1011, 1013
"""Codes of RFC 6455 and its registry, by which the connection is closed."""


@router.websocket("/ws")
@router.websocket("/api/ws")
async def live(websocket: WebSocket) -> None:
    """Tell a listener what happens from now on, until either side leaves."""
    parts: Parts = websocket.app.state.parts
    query = websocket.query_params
    try:
        agents = {one for one in query.get("agentId", "").split(",") if one}
        listener = Listener(checked_user(query.get("userId", OWNER)), agents or None)
        await parts.database.hear_clock()
        after = Coordinate((await horizon(parts.database)).settled, 0)
    except (Invalid, Unavailable) as error:
        await websocket.close(REFUSED if isinstance(error, Invalid) else TRY_LATER)
        return
    await websocket.accept()
    hello = {"userId": listener.user_id, "agents": sorted(agents), "position": str(after)}
    await _send(websocket, "connected", hello, _now(parts))
    told = asyncio.create_task(_tell(websocket, parts, listener, after))
    heard = asyncio.create_task(_hear(websocket, parts, listener))
    await asyncio.wait({told, heard}, return_when=asyncio.FIRST_COMPLETED)
    for task in (told, heard):
        task.cancel()
    broken, _ = await asyncio.gather(told, heard, return_exceptions=True)
    if isinstance(broken, Exception) and not isinstance(broken, GONE):
        log.error("unforeseen %s", type(broken).__name__, exc_info=broken)
        await websocket.close(BROKEN)
    elif parts.leaving.is_set():
        await websocket.close(LEAVING)


async def _tell(websocket: WebSocket, parts: Parts, listener: Listener, after: Coordinate) -> None:
    async for events in follow(parts.database, parts.hints, after, EVERYTHING, parts.leaving):
        heard = [_heard(one) for one in events]
        depths = await _depths(parts.database, heard)
        for one in heard:
            for frame in frames(one, depths):
                if listener.wants(frame):
                    await _tell_one(websocket, frame, one)


async def _tell_one(websocket: WebSocket, frame: Frame, heard: Heard) -> None:
    await _send(websocket, frame.type, frame.payload, instant(heard.at))


async def _hear(websocket: WebSocket, parts: Parts, listener: Listener) -> None:
    """Take subscriptions until the client leaves; what makes no sense is answered and forgotten."""
    while True:
        try:
            text = await websocket.receive_text()
        except (*GONE, KeyError):
            return
        mistake = _obeyed(text, listener)
        if mistake is not None:
            await _send(websocket, "error", {"detail": mistake}, _now(parts))
        else:
            chosen = {"agents": sorted(listener.agents or ())}
            await _send(websocket, "subscribed", chosen, _now(parts))


def _obeyed(text: str, listener: Listener) -> str | None:
    """Do what a message asks; else what is wrong with it."""
    try:
        wish = json.loads(text)
    except (ValueError, RecursionError):
        return 'a message is JSON, such as {"subscribe": ["agt_1"]}'
    if not isinstance(wish, dict) or not set(wish) <= {"subscribe", "unsubscribe"} or not wish:
        return "a message has subscribe or unsubscribe, each with a list of agents"
    for names in wish.values():
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            return "subscribe and unsubscribe take a list of agents"
    listener.change(wish.get("subscribe", ()), wish.get("unsubscribe", ()))
    return None


def _now(parts: Parts) -> str:
    return instant(parts.database.clock.now())


async def _send(websocket: WebSocket, kind: str, payload: dict[str, Any], at: str) -> None:
    frame = encoded({"type": kind, "payload": payload, "timestamp": at})
    await websocket.send_text(frame.decode("utf-8"))


def _heard(one: Logged) -> Heard:
    return Heard(
        id=one.id, type=one.type, version=one.version, data=one.plain_data(),
        meta=one.plain_meta(), at=one.recorded_at,
    )  # fmt: skip


async def _depths(database: Database, heard: list[Heard]) -> dict[str, int]:
    names = {name for one in heard if (name := agent_of(one)) is not None}
    try:
        return await depths_of(Reading(database), sorted(names)) if names else {}
    except Unavailable:
        return {}
