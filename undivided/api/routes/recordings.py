"""Recordings: recorded model answers, uploaded once and used as a model."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from undivided.api.answers import answer
from undivided.api.asked import MIB, raw_body
from undivided.api.once import Claim, once
from undivided.api.parts import parts_of
from undivided.api.shapes.accepted import Recording
from undivided.domain.rehearsal import parse_recording
from undivided.store.queries.reading import Reading
from undivided.store.recordings import keep_recording

router = APIRouter(prefix="/api/recordings", tags=["recordings"])
RECORDING_LIMIT = 64 * MIB


@router.post("", status_code=201)
async def upload_recording(request: Request) -> Response:
    """Keep a JSON recording under the SHA-256 of its bytes; sending it twice changes nothing."""
    database, raw = parts_of(request).database, await raw_body(request, RECORDING_LIMIT)
    parse_recording(raw, "the body")

    async def effect(_claim: Claim) -> Response:
        name = await keep_recording(database, raw)
        seen = await Reading(database).seen()
        return answer(Recording(id=name, bytes=len(raw), position=seen), 201)

    return await once(request, raw, effect)
