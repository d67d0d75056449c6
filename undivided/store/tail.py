"""The tail: the whole log in one order, a page at a time, without gap or repeat.

The order is `(txid, position)`. A page never reaches past the horizon (see `horizon.py`), so
that an event which is committed later can never stand before one that was already read, however
many agents are written to at once; an append that was rolled back leaves nothing to wait for.
A page is bounded in rows and in bytes, large contents included, and holds one event at least.
Reading takes one statement and holds nothing between pages.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Raw, Struct

from undivided.domain.coordinates import ORIGIN, Coordinate
from undivided.domain.events.catalogue import CATALOGUE
from undivided.store.blobs import blob_sizes, blob_texts
from undivided.store.codec import blob_references, decode_tree
from undivided.store.database import Database
from undivided.store.upcasts import upcast

ROWS = 500
BYTES = 4 * 1024 * 1024

CURRENT = dict(CATALOGUE.values())
"""Today's schema number of each event, by its stored name."""

_PAGE = """
WITH h AS MATERIALIZED (
  SELECT pg_snapshot_xmin(s)::text::bigint + txid_base AS txid,
         pg_snapshot_xmin(s) <> pg_snapshot_xmax(s) AS in_flight
    FROM log_base, pg_current_snapshot() s),
fetched AS (
  SELECT e.* FROM events e
   WHERE e.tenant = %(tenant)s AND (e.txid, e.position) > (%(txid)s, %(position)s)
     AND e.txid < (SELECT h.txid FROM h)
     AND (e.txid, e.position) <= (%(last_txid)s, %(last_position)s)
     AND (%(streams)s::text[] IS NULL OR e.stream = ANY(%(streams)s))
     AND (%(types)s::text[] IS NULL OR e.type = ANY(%(types)s))
   ORDER BY e.txid, e.position LIMIT %(rows)s),
page AS (
  SELECT s.*, sum(s.bytes) OVER (ORDER BY s.txid, s.position) AS total,
         row_number() OVER (ORDER BY s.txid, s.position) AS nth, count(*) OVER () AS found
    FROM fetched s)
SELECT h.txid, p.txid, p.position, p.id::text, p.stream, p.version, p.type, p.schema,
       p.data::text, p.meta::text, p.recorded_at, p.total, p.found, h.in_flight
  FROM h LEFT JOIN page p ON p.nth = 1 OR p.total <= %(bytes)s
 ORDER BY p.txid, p.position"""


class Wanted(Struct, frozen=True, kw_only=True):
    """Which events: None means all; `until` the last coordinate that may be read."""

    streams: Sequence[str] | None = None
    types: Sequence[str] | None = None
    until: Coordinate = Coordinate(2**63 - 1, 2**63 - 1)


EVERYTHING = Wanted()


class Logged(Struct, frozen=True, kw_only=True):
    """One event as it is told: `data` and `meta` are JSON, or plain values where escaped."""

    coordinate: Coordinate
    id: str
    stream: str
    version: int
    type: str
    schema: int
    data: Any
    meta: Any
    recorded_at: datetime

    def plain_data(self) -> dict[str, Any]:
        """What was recorded, as plain values."""
        return _plain(self.data)

    def plain_meta(self) -> dict[str, Any]:
        """Causes and actor, as plain values."""
        return _plain(self.meta)


def _plain(told: Any) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.json.decode(told) if isinstance(told, Raw) else told
    return plain


class Page(Struct, frozen=True):
    """Some events in order, and the coordinate behind which the next page begins."""

    events: list[Logged]
    end: Coordinate
    full: bool
    """Whether more may follow at once."""
    in_flight: bool = False
    """Whether transactions are open that may have written events before those read here."""


async def read_tail(
    database: Database,
    after: Coordinate = ORIGIN,
    wanted: Wanted = EVERYTHING,
    rows: int = ROWS,
    max_bytes: int = BYTES,
) -> Page:
    """The events behind `after`, oldest first, as many as fit."""
    values = {
        "tenant": database.tenant, "txid": after.txid, "position": after.position,
        "last_txid": wanted.until.txid, "last_position": wanted.until.position,
        "streams": None if wanted.streams is None else list(wanted.streams),
        "types": None if wanted.types is None else list(wanted.types),
        "rows": rows, "bytes": max_bytes,
    }  # fmt: skip
    async with database.connection() as connection:
        cursor = await connection.execute(_PAGE, values)
        found = await cursor.fetchall()
    settled, there = (found[0][0], found[0][12] or 0) if found else (0, 0)
    in_flight = bool(found and found[0][13])
    kept = await _within(database, [row for row in found if row[1] is not None], max_bytes)
    events = await logged_rows(database, kept)
    if len(kept) < there or there == rows:
        return Page(events, events[-1].coordinate, True, in_flight)
    return Page(events, _end(events, after, settled, wanted.until), False, in_flight)


async def logged_rows(database: Database, rows: list[Any]) -> list[Logged]:
    """Rows in the form of `_PAGE`, told whole."""
    blobs = await blob_texts(database, [row[8] for row in rows])
    return [_logged(row, blobs) for row in rows]


def _end(events: list[Logged], after: Coordinate, settled: int, until: Coordinate) -> Coordinate:
    """Everything settled was looked at, whether or not it was wanted."""
    last = events[-1].coordinate if events else after
    return max(last, min(until, Coordinate(settled - 1, 2**63 - 1)))


async def _within(database: Database, rows: list[Any], max_bytes: int) -> list[Any]:
    """As many of `rows` as fit with the contents that they refer to; one at least."""
    references = [blob_references(row[8]) for row in rows]
    names = set().union(*references)
    if not names:
        return rows
    sizes, total = await blob_sizes(database, names), 0
    for number, row in enumerate(rows):
        total += sum(sizes.get(name, 0) for name in references[number])
        if number and row[11] + total > max_bytes:
            return rows[:number]
    return rows


def _logged(row: Any, blobs: dict[str, str]) -> Logged:
    _, txid, position, event_id, stream, version, name, schema, data, meta, at, *_ = row
    current = max(schema, CURRENT.get(name, schema))
    return Logged(
        coordinate=Coordinate(txid, position), id=event_id, stream=stream, version=version,
        type=name, schema=current, data=_told(data, blobs, (name, schema, current)),
        meta=_told(meta, {}, (name, 0, 0)), recorded_at=at,
    )  # fmt: skip


def _told(text: str, blobs: dict[str, str], shape: tuple[str, int, int]) -> Any:
    """Stored JSON as it may be told: unescaped, whole, in today's shape."""
    name, schema, current = shape
    if schema == current and "\\u001a" not in text:
        return Raw(text.encode())
    return upcast(name, schema, current, decode_tree(text, blobs))
