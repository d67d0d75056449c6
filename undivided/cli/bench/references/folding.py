"""The plainest fold: psycopg, msgspec into frozen structs, one frozen state of its own.

It reads what a reducer may ask of an event: what happened, when, why, and its place.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

import msgspec
import psycopg
from msgspec import Struct
from msgspec.structs import replace

from undivided.domain.events.catalogue import CATALOGUE
from undivided.domain.events.flights import FlightAcquired
from undivided.domain.events.items import ItemCompleted, ItemPicked, StimulusAccepted
from undivided.domain.recorded import Meta

_EVENTS = (
    "SELECT id::text, version, type, data::text, meta::text, recorded_at FROM events"
    " WHERE tenant = 'default' AND stream = %s AND version <= %s ORDER BY version"
)
_meta_of = msgspec.json.Decoder(Meta).decode
_DECODERS: dict[str, Callable[[str], Any]] = {
    name: msgspec.json.Decoder(kind).decode for kind, (name, _) in CATALOGUE.items()
}


class Counted(Struct, frozen=True):
    """What this fold keeps of an agent."""

    waiting: int = 0
    next_seq: int = 1
    focus: str | None = None
    epoch: int = 0
    handled: int = 0
    changed_at: datetime | None = None


def fold_rate(url: str, stream: str, events: int) -> float:
    """Events of a stream read, decoded and folded per second."""
    state = Counted()
    with psycopg.connect(url, autocommit=True) as connection:
        began = time.perf_counter()
        for _id, _version, name, data, meta, at in connection.execute(_EVENTS, (stream, events)):
            state = _evolve(state, _DECODERS[name](data), _meta_of(meta), at)
    return events / (time.perf_counter() - began)


def _evolve(state: Counted, event: Any, _meta: Meta, at: datetime) -> Counted:
    match event:
        case StimulusAccepted():
            return replace(state, waiting=state.waiting + 1, next_seq=event.seq + 1, changed_at=at)
        case ItemPicked():
            return replace(state, waiting=state.waiting - 1, focus=event.item_id, changed_at=at)
        case ItemCompleted():
            return replace(state, focus=None, handled=state.handled + 1, changed_at=at)
        case FlightAcquired():
            return replace(state, epoch=event.epoch, changed_at=at)
        case _:
            return state
