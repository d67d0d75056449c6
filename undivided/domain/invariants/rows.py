"""10: folding the log from its beginning gives the rows that are there."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from undivided.domain.coordinates import Coordinate
from undivided.domain.invariants.finding import Finding

INVARIANT = 10


class RowPlace(Struct, frozen=True):
    """One row: its table and id, and the stream it is folded from."""

    table: str
    row_id: str
    stream: str


def row_difference(
    place: RowPlace, folded: Any | None, stored: Any | None, horizon: Coordinate
) -> Finding | None:
    """What is wrong with a stored row, compared with what the log up to `horizon` says it is.

    Both are row structs; None where there is no such row.
    """
    if folded == stored:
        return None
    if stored is None:
        rule, text = "row_missing", "the log says there is such a row, and there is none"
    elif folded is None:
        rule, text = "row_without_history", "no event says that there is such a row"
    else:
        rule, text = "row_differs", _fields(folded, stored)
    return Finding(
        invariant=INVARIANT,
        rule=rule,
        subject=f"{place.table}/{place.row_id}",
        where=str(horizon),
        stream=place.stream,
        version=0,
        text=text,
    )


def _fields(folded: Any, stored: Any) -> str:
    before, after = msgspec.structs.asdict(folded), msgspec.structs.asdict(stored)
    names = [name for name in before if before[name] != after[name]]
    return "; ".join(f"{n} is {after[n]!r:.120}, the log says {before[n]!r:.120}" for n in names)


def stream_version_difference(
    stream: str, counted: int, stored: int | None, horizon: Coordinate
) -> Finding:
    """A stream whose row says another version than its events do."""
    there = "is missing" if stored is None else f"says {stored}"
    return Finding(
        invariant=INVARIANT,
        rule="stream_version_differs",
        subject=f"streams/{stream}",
        where=str(horizon),
        stream=stream,
        version=counted,
        text=f"the version row of {stream} {there}, its last event is {counted}",
    )
