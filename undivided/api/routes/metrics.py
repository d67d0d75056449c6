"""What a Prometheus server reads: a few numbers, each from one cheap look."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from undivided.api.parts import Parts, parts_of
from undivided.domain.errors import Unavailable
from undivided.store.queries.reading import Reading

router = APIRouter(include_in_schema=False)
TEXT = "text/plain; version=0.0.4; charset=utf-8"

_COUNTS = """
SELECT coalesce((SELECT max(position) FROM events WHERE txid = (SELECT max(txid) FROM events)), 0),
       (SELECT coalesce(sum(waiting), 0) FROM agents WHERE waiting > 0),
       (SELECT count(*) FROM agents WHERE wants_worker AND attention_state = 'focused'),
       (SELECT count(*) FROM agents WHERE attention_state = 'suspended')"""


@router.get("/metrics")
async def metrics(request: Request) -> Response:
    """Positions appended, depth of all mailboxes, turns at work, hints that were dropped."""
    parts = parts_of(request)
    told = [
        ("undivided_hints_dropped_total", "counter", parts.hints.dropped),
        ("undivided_rings_dropped_total", "counter", parts.outlet.doorbell.dropped),
        ("undivided_redis_up", "gauge", int(parts.hints.healthy)),
        *await _from_database(parts),
    ]
    lines = [f"# TYPE {name} {kind}\n{name} {value}\n" for name, kind, value in told]
    return Response("".join(lines), media_type=TEXT)


async def _from_database(parts: Parts) -> list[tuple[str, str, int]]:
    try:
        appended, waiting, focused, suspended = (await Reading(parts.database).rows(_COUNTS))[0]
    except Unavailable:
        return [("undivided_database_up", "gauge", 0)]
    return [
        ("undivided_database_up", "gauge", 1),
        ("undivided_log_position", "counter", appended),
        ("undivided_items_waiting", "gauge", waiting),
        ("undivided_turns_focused", "gauge", focused),
        ("undivided_turns_suspended", "gauge", suspended),
    ]
