"""The plainest fold: psycopg, msgspec into frozen structs, one frozen state of its own."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import msgspec
import psycopg
from msgspec import Struct
from msgspec.structs import replace

from undivided.domain.events.catalogue import CATALOGUE
from undivided.domain.events.flights import FlightAcquired
from undivided.domain.events.items import ItemCompleted, ItemPicked, StimulusAccepted

_EVENTS = (
    "SELECT type, data::text FROM events WHERE tenant = 'default' AND stream = %s"
    " AND version <= %s ORDER BY version"
)
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


def fold_rate(url: str, stream: str, events: int) -> float:
    """Events of a stream read, decoded and folded per second."""
    state = Counted()
    with psycopg.connect(url, autocommit=True) as connection:
        began = time.perf_counter()
        for name, data in connection.execute(_EVENTS, (stream, events)):
            state = _evolve(state, _DECODERS[name](data))
    return events / (time.perf_counter() - began)


def _evolve(state: Counted, event: Any) -> Counted:
    match event:
        case StimulusAccepted():
            return replace(state, waiting=state.waiting + 1, next_seq=event.seq + 1)
        case ItemPicked():
            return replace(state, waiting=state.waiting - 1, focus=event.item_id)
        case ItemCompleted():
            return replace(state, focus=None, handled=state.handled + 1)
        case FlightAcquired():
            return replace(state, epoch=event.epoch)
        case _:
            return state
