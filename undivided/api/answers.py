"""How answers become bytes: msgspec structs in camelCase, times in milliseconds.

Text that UTF-8 cannot hold (lone surrogates survive in content) is written with JSON's own
escapes, which every reader takes.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import msgspec
from fastapi import Response

from undivided.domain.coordinates import Coordinate

JSON = "application/json"
_encode = msgspec.json.Encoder().encode


def encoded(value: Any) -> bytes:
    """A value as JSON."""
    try:
        return _encode(value)
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(value, enc_hook=_decoded)).encode("ascii")


def _decoded(raw: Any) -> Any:
    """Stored JSON that was passed through as it is, among values that cannot be."""
    return msgspec.json.decode(raw)


def answer(value: Any, status: int = 200) -> Response:
    """A JSON answer."""
    return Response(encoded(value), status, media_type=JSON)


def instant(at: datetime) -> str:
    """A time as the API tells it: RFC 3339, UTC, milliseconds."""
    there = at if at.tzinfo is UTC else at.astimezone(UTC)
    return there.isoformat(timespec="milliseconds")[:-6] + "Z"


def instant_or_none(at: datetime | None) -> str | None:
    """The same for a time that may not have come."""
    return None if at is None else instant(at)


def token_or(coordinate: Coordinate | None, seen: str) -> str:
    """Where a command left the log, or where it was where nothing had to change."""
    return seen if coordinate is None else str(coordinate)
