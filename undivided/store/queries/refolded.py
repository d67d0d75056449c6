"""Rows of the past, folded again from the events of their stream that are about them."""

from __future__ import annotations

from typing import Any

from undivided.domain.events.catalogue import CATALOGUE
from undivided.projections.table import BY_TABLE
from undivided.store.history import placed_events
from undivided.store.queries.reading import Reading

_EVENTS = """
SELECT e.txid, e.position, e.id, e.stream, e.version, e.type, e.schema, e.data::text,
       e.meta::text, e.recorded_at
  FROM events e
 WHERE e.tenant = %(tenant)s AND e.stream = %(stream)s AND e.type = ANY(%(types)s)
   AND (e.txid, e.position) <= (%(txid)s, %(position)s)
   AND e.data::text LIKE %(mention)s
 ORDER BY e.version"""


async def as_it_was(reading: Reading, table: str, row_id: str, stream: str) -> Any | None:
    """A row as it stood where `reading` looks; None if it was not there yet."""
    projection = BY_TABLE[table]
    found = await reading.rows(
        _EVENTS, stream=stream, types=[CATALOGUE[kind][0] for kind in projection.events],
        mention=f'%"{row_id}"%', **reading.past(),
    )  # fmt: skip
    row = None
    for placed in await placed_events(reading.database, found):
        if row_id in projection.keys(placed.recorded):
            row = projection.reduce(row_id, row, placed.recorded)
    return row
