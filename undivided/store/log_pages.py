"""Reading the log whole and in its order, in pieces of bounded size, on one connection.

The connection is the caller's, because what may be seen is: a pass that compares reads inside
one snapshot, a pass that follows writers stops at what is settled (see `horizon.py`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from undivided.domain.coordinates import ORIGIN, Coordinate
from undivided.domain.errors import Corrupt
from undivided.domain.placed import Placed
from undivided.domain.recorded import Meta, Recorded
from undivided.domain.value import Value
from undivided.store.codec import REFERENCE_SIGN, blob_references, decode_event, row_decoder
from undivided.store.database import Connection

PAGE_ROWS = 2_000
PAGE_BYTES = 8 * 1024 * 1024
PIECE_BLOBS = 16
"""Blobs in hand at once; each may be as large as one content."""

_PAGE = """
SELECT tenant, txid, position, id::text, stream, version, type, schema, data::text, meta::text,
       recorded_at
  FROM (SELECT *, sum(bytes) OVER (ORDER BY txid, position) - bytes AS before
          FROM (SELECT * FROM events
                 WHERE (txid, position) > (%(txid)s, %(position)s)
                   AND txid < %(settled)s
                 ORDER BY txid, position LIMIT %(rows)s) page) counted
 WHERE before < %(bytes)s ORDER BY txid, position"""
_OF_STREAM = """
SELECT tenant, txid, position, id::text, stream, version, type, schema, data::text, meta::text,
       recorded_at
  FROM (SELECT *, sum(bytes) OVER (ORDER BY version) - bytes AS before
          FROM (SELECT * FROM events
                 WHERE tenant = %(tenant)s AND stream = %(stream)s AND version > %(version)s
                 ORDER BY version LIMIT %(rows)s) page) counted
 WHERE before < %(bytes)s ORDER BY version"""
_BLOBS = "SELECT tenant, sha256, content FROM blobs WHERE sha256 = ANY(%s)"
_SETTLED = """
SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint + txid_base FROM log_base"""

EVERYTHING = 2**63 - 1
"""A bound on transaction ids that leaves none out."""

_meta_of = row_decoder(Meta)
Row = tuple[Any, ...]


class Kept(Value, frozen=True):
    """One event of the log, and whose it is."""

    tenant: str
    placed: Placed


async def settled(connection: Connection) -> int:
    """The first transaction id that may still gain events."""
    cursor = await connection.execute(_SETTLED)
    row = await cursor.fetchone()
    if row is None:
        raise Corrupt("log_base is empty; run `undivided migrate`")
    return int(row[0])


async def pieces(
    connection: Connection, after: Coordinate = ORIGIN, before_txid: int = EVERYTHING
) -> AsyncIterator[list[Kept]]:
    """Every event after a coordinate and below a transaction id, in order, piece by piece."""
    while True:
        values = {
            "txid": after.txid, "position": after.position, "settled": before_txid,
            "rows": PAGE_ROWS, "bytes": PAGE_BYTES,
        }  # fmt: skip
        cursor = await connection.execute(_PAGE, values)
        rows = await cursor.fetchall()
        if not rows:
            return
        async for piece in _decoded(connection, rows):
            yield piece
        after = Coordinate(rows[-1][1], rows[-1][2])


async def pieces_of_stream(
    connection: Connection, tenant: str, stream: str, version: int = 0
) -> AsyncIterator[list[Kept]]:
    """The events of one stream after a version, piece by piece."""
    while True:
        values = {
            "tenant": tenant, "stream": stream, "version": version,
            "rows": PAGE_ROWS, "bytes": PAGE_BYTES,
        }  # fmt: skip
        cursor = await connection.execute(_OF_STREAM, values)
        rows = await cursor.fetchall()
        if not rows:
            return
        async for piece in _decoded(connection, rows):
            yield piece
        version = rows[-1][5]


async def _decoded(connection: Connection, rows: list[Row]) -> AsyncIterator[list[Kept]]:
    """A page decoded, in pieces that refer to a bounded number of blobs each."""
    if not any(REFERENCE_SIGN in row[8] for row in rows):
        yield [_kept(row, {}) for row in rows]
        return
    for piece in _cut(rows):
        blobs = await _blobs(connection, piece)
        yield [_kept(row, blobs.get(row[0], {})) for row in piece]


def _cut(rows: list[Row]) -> list[list[Row]]:
    cut: list[list[Row]] = [[]]
    blobs = 0
    for row in rows:
        names = len(blob_references(row[8]))
        if cut[-1] and blobs + names > PIECE_BLOBS:
            cut.append([])
            blobs = 0
        cut[-1].append(row)
        blobs += names
    return cut


async def _blobs(connection: Connection, rows: list[Row]) -> dict[str, dict[str, str]]:
    """The blobs that these rows refer to, by tenant and name."""
    blobs: dict[str, dict[str, str]] = {}
    names = {name for row in rows for name in blob_references(row[8])}
    if names:
        cursor = await connection.execute(_BLOBS, (list(names),))
        for tenant, name, content in await cursor.fetchall():
            blobs.setdefault(tenant, {})[name] = bytes(content).decode()
    return blobs


def _kept(row: Row, blobs: dict[str, str]) -> Kept:
    tenant, txid, position, event_id, stream, version, name, schema, data, meta, at = row
    event = decode_event(name, schema, data, blobs)
    if event is None:
        raise Corrupt(
            f"event {event_id} is called {name}, which this release does not know; "
            "use the release that wrote it, or a newer one"
        )
    recorded = Recorded(event_id, stream, version, event, _meta_of(meta), at)
    return Kept(tenant, Placed(Coordinate(txid, position), recorded))
