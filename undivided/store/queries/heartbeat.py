"""What the clock will bring to an agent, now or as it stood."""

from __future__ import annotations

from msgspec import Struct

from undivided.domain.errors import NotFound
from undivided.domain.recorded import agent_stream
from undivided.domain.state.agent import AgentRow
from undivided.domain.state.heartbeat import HeartbeatRow
from undivided.store.codec import row_decoder
from undivided.store.history import past_of
from undivided.store.queries.reading import Reading, is_id

_ONE = """
SELECT json_build_object('agent', to_jsonb(a), 'row', to_jsonb(h))::text
  FROM agents a JOIN heartbeats h ON h.tenant = a.tenant AND h.id = a.id
 WHERE a.tenant = %(tenant)s AND a.id = %(id)s AND a.lifecycle <> 'deleted'"""


class HeartbeatThen(Struct, frozen=True):
    """An agent with its heartbeat's row."""

    agent: AgentRow
    row: HeartbeatRow


_then_of = row_decoder(HeartbeatThen)


async def heartbeat(reading: Reading, agent_id: str) -> HeartbeatThen:
    """An agent's heartbeat.

    Raises:
        NotFound: there is no such agent, or was none at that moment.
    """
    found = await _find(reading, agent_id) if is_id(agent_id) else None
    if found is None or found.agent.lifecycle == "deleted":
        raise NotFound(f"there is no agent {agent_id[:128]!r}")
    return found


async def _find(reading: Reading, agent_id: str) -> HeartbeatThen | None:
    if reading.at is None:
        rows = await reading.rows(_ONE, id=agent_id)
        return _then_of(rows[0][0]) if rows else None
    past = await past_of(reading.database, agent_stream(agent_id), reading.at)
    if past is None or past.agent is None or past.heartbeat is None:
        return None
    return HeartbeatThen(past.agent, past.heartbeat)
