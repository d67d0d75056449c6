"""An agent's heartbeat and daily report: when they come, and asking for one now."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from fastapi import APIRouter, Request, Response

from undivided.api.answers import answer, token_or
from undivided.api.asked import raw_body, reading_of
from undivided.api.once import Claim, once
from undivided.api.parts import parts_of
from undivided.api.routes.mailbox import known
from undivided.api.shapes.accepted import AcceptedItem
from undivided.api.shapes.heartbeat import heartbeat_shape
from undivided.api.shapes.items import times_of
from undivided.domain.callbacks import PENDING_AT_MOST
from undivided.domain.errors import Invalid
from undivided.domain.recorded import Meta
from undivided.store.commands.heartbeats import AskedFor, ask_for_beat, ask_for_report
from undivided.store.commands.outlet import Outlet
from undivided.store.queries import heartbeat as queries
from undivided.store.queries.callbacks import WantedCallbacks, callbacks
from undivided.store.queries.reading import Reading

router = APIRouter(prefix="/api/agents", tags=["agents"])
Ask = Callable[[Outlet, str, str, Meta], Awaitable[AskedFor]]


@router.get("/{agent_id}/heartbeat")
async def get_heartbeat(request: Request, agent_id: str) -> Response:
    """When the agent's heart beat last and beats next, at which pace, and what else is timed."""
    reading = await reading_of(request, parts_of(request).database)
    then = await queries.heartbeat(reading, agent_id)
    wanted = WantedCallbacks(agent_id=agent_id, statuses=("pending",), limit=PENDING_AT_MOST)
    to_come, _ = await callbacks(reading, wanted)
    return answer(heartbeat_shape(then, to_come, await reading.seen()))


@router.post("/{agent_id}/heartbeat/trigger", status_code=202)
async def trigger_heartbeat(request: Request, agent_id: str) -> Response:
    """Let the agent's heart beat now, at whatever hour."""
    return await _asked(request, agent_id, ask_for_beat)


@router.post("/{agent_id}/daily-report", status_code=202)
async def ask_daily_report(request: Request, agent_id: str) -> Response:
    """Ask the agent for its report of today."""
    return await _asked(request, agent_id, ask_for_report)


async def _asked(request: Request, agent_id: str, ask: Ask) -> Response:
    parts, raw = parts_of(request), await raw_body(request)
    if raw.strip() not in {b"", b"{}"}:
        raise Invalid("this command takes no body", "body")

    async def effect(claim: Claim) -> Response:
        done = await ask(parts.outlet, known(agent_id), claim.fresh_id("mbx"), claim.meta)
        seen = "" if done.coordinate else await Reading(parts.database).seen()
        status = times_of(done.item).status
        position = token_or(done.coordinate, seen)
        return answer(AcceptedItem(item_id=done.item.id, status=status, position=position), 202)

    return await once(request, raw, effect)
