"""A dump that was restored into another cluster goes on in order.

Transaction ids start again there, so that an append would sort before all that the dump brought,
and behind readers that have seen it. `migrate` raises the base that is added to them; but nothing
forces anybody to migrate after a restore, and one append is enough. So every connection looks
before it is used for the first time: one probe of an index, and nothing is found but after a
restore.
"""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg import AsyncConnection

_AHEAD = """
SELECT EXISTS (SELECT 1 FROM events WHERE txid >= (
  SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint + txid_base FROM log_base))"""
_RAISE = """
UPDATE log_base SET txid_base = newest.txid + 1 - pg_current_xact_id()::text::bigint
  FROM (SELECT max(txid) AS txid FROM events) newest
 WHERE newest.txid >= pg_current_xact_id()::text::bigint + txid_base"""


async def keep_order(connection: AsyncConnection[Any]) -> None:
    """Make sure that what this connection appends comes after all that is there."""
    try:
        cursor = await connection.execute(_AHEAD, prepare=False)
    except psycopg.errors.UndefinedTable:
        return  # there is no log yet: whoever makes one begins at the beginning
    if await cursor.fetchone() == (True,):
        async with connection.transaction():
            await connection.execute("LOCK TABLE log_base IN EXCLUSIVE MODE")
            await connection.execute(_RAISE)
