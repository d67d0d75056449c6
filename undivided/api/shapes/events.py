"""Events of the log as the API shows them."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from undivided.api.answers import instant
from undivided.store.tail import Logged
from undivided.store.wording import in_camel_case


class EventShape(Struct, frozen=True, rename="camel", kw_only=True):
    """One event; `data` is what was recorded, in today's shape, which is `schema`."""

    position: str
    id: str
    stream: str
    version: int
    type: str
    schema: int
    data: Any
    meta: Any
    recorded_at: str


class EventPage(Struct, frozen=True, rename="camel", kw_only=True):
    """Some events in order; everything up to `position` was looked at."""

    items: list[EventShape]
    next_cursor: str | None
    position: str


def event_shape(one: Logged) -> EventShape:
    """How an event is shown."""
    return EventShape(
        position=str(one.coordinate), id=one.id, stream=one.stream, version=one.version,
        type=one.type, schema=one.schema, data=in_camel_case(one.type, one.plain_data()),
        meta=one.meta, recorded_at=instant(one.recorded_at),
    )  # fmt: skip
