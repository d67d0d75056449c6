"""Whether the service lives, and whether it can serve. These need no authentication."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter, Request, Response
from msgspec import Struct

from undivided.api.answers import answer
from undivided.api.parts import Parts, parts_of
from undivided.domain.errors import Unavailable
from undivided.store.queries.reading import Reading

router = APIRouter(tags=["health"])


class Health(Struct, frozen=True, rename="camel", kw_only=True):
    """The process answers."""

    status: Literal["ok"]


class Readiness(Struct, frozen=True, rename="camel", kw_only=True):
    """`degraded`: everything is accepted, but Redis is away and work starts a little later."""

    status: Literal["ready", "degraded", "not_ready"]
    database: Literal["ok", "unreachable"]
    schema: Literal["ok", "missing", "outdated", "unknown"]
    redis: Literal["ok", "unreachable"]


@router.get("/healthz")
@router.get("/api/healthz", include_in_schema=False)
async def healthz() -> Response:
    """Whether the process answers at all."""
    return answer(Health(status="ok"))


@router.get("/readyz")
@router.get("/api/readyz", include_in_schema=False)
async def readyz(request: Request) -> Response:
    """Whether requests can be served: 200, or 503 with what is missing."""
    parts = parts_of(request)
    readiness = await _readiness(parts)
    return answer(readiness, 503 if readiness.status == "not_ready" else 200)


async def _readiness(parts: Parts) -> Readiness:
    redis: Literal["ok", "unreachable"] = (
        "ok" if parts.hints.healthy and parts.outlet.doorbell.healthy else "unreachable"
    )
    try:
        rows = await Reading(parts.database).rows(_SCHEMA)
        at = (await Reading(parts.database).rows(_REVISION))[0][0] if rows[0][0] else None
    except Unavailable:
        return Readiness(status="not_ready", database="unreachable", schema="unknown", redis=redis)
    if at != parts.schema:
        schema: Literal["missing", "outdated"] = "outdated" if at else "missing"
        return Readiness(status="not_ready", database="ok", schema=schema, redis=redis)
    status: Literal["ready", "degraded"] = "ready" if redis == "ok" else "degraded"
    return Readiness(status=status, database="ok", schema="ok", redis=redis)


_SCHEMA = "SELECT to_regclass('alembic_version') IS NOT NULL"
_REVISION = "SELECT max(version_num) FROM alembic_version"
