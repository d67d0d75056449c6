"""Events as text: one JSON object each, in the words in which the API shows them.

An export is a header line and then events in the order of the log. Contents are whole: what the
database keeps apart in blobs stands in its place. ASCII, because lone surrogates survive in
nothing else; times to the microsecond, because rows are folded from them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from undivided.domain.coordinates import Coordinate, parse_coordinate
from undivided.domain.errors import Corrupt, Invalid
from undivided.domain.events.catalogue import CATALOGUE
from undivided.domain.placed import Placed
from undivided.domain.recorded import Meta, Recorded
from undivided.store.tail import Logged
from undivided.store.upcasts import upcast
from undivided.store.wording import as_stored, in_camel_case

HEADER = "undivided-export"
VERSION = 1

_KINDS = {name: (kind, schema) for kind, (name, schema) in CATALOGUE.items()}


def told(one: Logged) -> dict[str, Any]:
    """An event as one object of JSON values."""
    return {
        "position": str(one.coordinate),
        "id": one.id,
        "stream": one.stream,
        "version": one.version,
        "type": one.type,
        "schema": one.schema,
        "data": in_camel_case(one.type, one.plain_data()),
        "meta": one.plain_meta(),
        "recordedAt": one.recorded_at.astimezone(UTC).isoformat(timespec="microseconds"),
    }


def line(value: Mapping[str, Any]) -> str:
    """One line of an export."""
    return json.dumps(value, separators=(",", ":")) + "\n"


def placed(value: Mapping[str, Any]) -> Placed:
    """The event that an object tells of.

    Raises:
        Invalid: it is not such an object; the sentence says what is wrong with it.
    """
    name = _text(value, "type")
    if name not in _KINDS:
        raise Invalid(f"type {name[:60]!r} is not known to this release", "type")
    kind, current = _KINDS[name]
    schema = value.get("schema", current)
    try:
        stored = as_stored(name, dict(value.get("data", {})))
        data = upcast(name, int(schema), current, stored)
        event = msgspec.convert(data, kind)
        meta = msgspec.convert(value.get("meta", {}), Meta)
        at = datetime.fromisoformat(_text(value, "recordedAt"))
        version = msgspec.convert(value.get("version"), int)
    except (msgspec.ValidationError, ValueError, TypeError, Corrupt) as error:
        raise Invalid(f"{name}: {error}", "data") from error
    if at.tzinfo is None:
        raise Invalid("recordedAt must say its time zone", "recordedAt")
    recorded = Recorded(_text(value, "id"), _text(value, "stream"), version, event, meta, at)
    return Placed(_coordinate(value), recorded)


def _text(value: Mapping[str, Any], field: str) -> str:
    there = value.get(field)
    if isinstance(there, str):
        return there
    raise Invalid(f'"{field}" must be text', field)


def _coordinate(value: Mapping[str, Any]) -> Coordinate:
    return parse_coordinate(_text(value, "position"))
