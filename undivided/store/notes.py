"""The keys of an agent's working memory, which decide what gives way to a new entry."""

from __future__ import annotations

from undivided.domain.events.agents import NotedBy
from undivided.store.codec import unescape_text
from undivided.store.database import TENANT
from undivided.store.log import AgentTx

_KEYS = """
SELECT m.key FROM memories m WHERE m.tenant = %s AND m.agent_id = %s AND m.by = %s
 ORDER BY m.noted_at, m.key"""


async def memory_keys(tx: AgentTx, by: NotedBy = "system") -> tuple[str, ...]:
    """The keys that the agent keeps itself, or that are kept for it, oldest first."""
    cursor = await tx.connection.execute(_KEYS, (TENANT, tx.agent.id, by))
    return tuple(unescape_text(key) for (key,) in await cursor.fetchall())
