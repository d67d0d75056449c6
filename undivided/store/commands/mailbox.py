"""Commands about what waits in a mailbox already."""

from __future__ import annotations

from undivided.domain import consolidation
from undivided.domain.recorded import Meta
from undivided.domain.state.item import ItemRow
from undivided.domain.stimuli import TASK_STATUS_UPDATE
from undivided.store.codec import escape_text
from undivided.store.commands.outlet import Outlet
from undivided.store.log import AgentTx
from undivided.store.looks import ROW_OF

_STATUS_UPDATES = """
SELECT to_jsonb(i)::text FROM items i
 WHERE i.tenant = %s AND i.agent_id = %s AND i.status = 'queued'
   AND i.source_type = %s AND i.payload->>'task_id' = %s
 ORDER BY i.priority, i.seq"""


async def drop_status_updates(
    outlet: Outlet, agent_id: str, task_id: str, meta: Meta
) -> tuple[str, ...]:
    """Discard the news of a task that is begun anew; answers the items that went.

    Raises:
        NotFound: there is no such agent.
    """
    async with outlet.log.locked(agent_id) as tx:
        waiting = await _status_updates(tx, outlet.log.database.tenant, task_id)
        events = consolidation.drop_status_updates(tx.agent, waiting, task_id)
        if not events:
            return ()
        known = {("items", item.id): item for item in waiting}
        await tx.append([tx.addition(*events)], meta, known=known)
    outlet.announce(agent_id)
    return tuple(event.item_id for event in events)


async def _status_updates(tx: AgentTx, tenant: str, task_id: str) -> tuple[ItemRow, ...]:
    wanted = (tenant, tx.agent.id, TASK_STATUS_UPDATE, escape_text(task_id))
    cursor = await tx.connection.execute(_STATUS_UPDATES, wanted)
    return tuple(ROW_OF["items"](text) for (text,) in await cursor.fetchall())
