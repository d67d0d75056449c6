"""What an interrupt judge is shown besides the pair: all that waits, and the last decisions."""

from __future__ import annotations

from undivided.domain.judging import DECISIONS_TOLD
from undivided.domain.state.item import ItemRow
from undivided.domain.state.session import DecisionRow
from undivided.store.codec import row_decoder
from undivided.store.database import Connection, Database
from undivided.store.queries.shortened import SHORT_ITEM

QUEUE_TOLD = 50

_item_of, _decision_of = row_decoder(ItemRow), row_decoder(DecisionRow)
_QUEUE = """
SELECT row_to_json(q)::text FROM (SELECT {item} FROM items i
  WHERE i.tenant = %s AND i.agent_id = %s AND i.status = 'queued'
  ORDER BY i.priority, i.seq LIMIT %s) q""".replace("{item}", SHORT_ITEM)
_DECISIONS = """
SELECT row_to_json(d)::text FROM decisions d WHERE d.tenant = %s AND d.agent_id = %s
  ORDER BY d.version DESC LIMIT %s"""


async def around(
    database: Database, agent_id: str
) -> tuple[tuple[ItemRow, ...], tuple[DecisionRow, ...]]:
    """What waits, best first and cut, and the last decisions, oldest first."""
    async with database.connection() as connection:
        return await around_in(connection, database.tenant, agent_id)


async def around_in(
    connection: Connection, tenant: str, agent_id: str
) -> tuple[tuple[ItemRow, ...], tuple[DecisionRow, ...]]:
    """The same, as a transaction sees it that is open already."""
    queue = await connection.execute(_QUEUE, (tenant, agent_id, QUEUE_TOLD))
    items = tuple(_item_of(text) for (text,) in await queue.fetchall())
    made = await connection.execute(_DECISIONS, (tenant, agent_id, DECISIONS_TOLD))
    decisions = tuple(_decision_of(text) for (text,) in await made.fetchall())
    return items, decisions[::-1]
