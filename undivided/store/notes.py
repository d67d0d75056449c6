"""The keys of an agent's working memory, which decide what gives way to a new entry."""

from __future__ import annotations

from undivided.store.codec import unescape_text
from undivided.store.database import TENANT
from undivided.store.log import AgentTx

_KEYS = "SELECT key FROM memories WHERE tenant = %s AND agent_id = %s ORDER BY noted_at, key"


async def memory_keys(tx: AgentTx) -> tuple[str, ...]:
    """The keys that there are, oldest first."""
    cursor = await tx.connection.execute(_KEYS, (TENANT, tx.agent.id))
    return tuple(unescape_text(key) for (key,) in await cursor.fetchall())
