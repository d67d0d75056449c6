"""The newest of several comments that one item is about: what it answers, and to whom."""

from __future__ import annotations

from undivided.domain.state.item import ItemRow
from undivided.store.codec import row_decoder
from undivided.store.database import TENANT, Connection

_item_of = row_decoder(ItemRow)
_NEWEST = """
WITH RECURSIVE family AS (
  SELECT i.id, i.seq FROM items i WHERE i.tenant = %(tenant)s AND i.merged_into = %(id)s
  UNION SELECT i.id, i.seq FROM items i
    JOIN family f ON i.merged_into = f.id AND i.tenant = %(tenant)s)
SELECT to_jsonb(i)::text FROM items i
 WHERE i.tenant = %(tenant)s AND i.id = (SELECT f.id FROM family f ORDER BY f.seq DESC LIMIT 1)"""


async def newest_comment(connection: Connection, item: ItemRow) -> ItemRow:
    """The item itself, or what has joined it last."""
    cursor = await connection.execute(_NEWEST, {"tenant": TENANT, "id": item.id})
    row = await cursor.fetchone()
    joined = item if row is None else _item_of(row[0])
    return max(item, joined, key=lambda one: one.seq)
