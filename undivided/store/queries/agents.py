"""Agents, one or many."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from undivided.domain.errors import NotFound
from undivided.domain.recorded import agent_stream
from undivided.domain.state.agent import AgentRow
from undivided.store.codec import row_decoder
from undivided.store.history import past_of
from undivided.store.queries.reading import Reading, is_id

_agent_of = row_decoder(AgentRow)

_ONE = """
SELECT to_jsonb(a)::text, e.txid || '-' || e.position
  FROM agents a
  JOIN streams s ON s.tenant = a.tenant AND s.stream = 'agent:' || a.id
  JOIN events e ON e.tenant = s.tenant AND e.stream = s.stream AND e.version = s.version
 WHERE a.tenant = %(tenant)s AND a.id = %(id)s AND a.lifecycle <> 'deleted'"""

_PAGE = """
SELECT to_jsonb(a)::text, e.txid || '-' || e.position
  FROM agents a
  JOIN streams s ON s.tenant = a.tenant AND s.stream = 'agent:' || a.id
  JOIN events e ON e.tenant = s.tenant AND e.stream = s.stream AND e.version = s.version
 WHERE a.tenant = %(tenant)s AND a.lifecycle <> 'deleted'
   AND (a.created_at, a.id) > (%(created_at)s, %(id)s)
 ORDER BY a.created_at, a.id LIMIT %(limit)s"""

_DEPTHS = """
SELECT a.id, a.waiting FROM agents a WHERE a.tenant = %(tenant)s AND a.id = ANY(%(ids)s)"""

_BORN = """
SELECT a.id, a.created_at FROM agents a
  JOIN events e ON e.tenant = a.tenant AND e.stream = 'agent:' || a.id AND e.version = 1
 WHERE a.tenant = %(tenant)s AND (a.created_at, a.id) > (%(created_at)s, %(id)s)
   AND (e.txid, e.position) <= (%(txid)s, %(position)s)
 ORDER BY a.created_at, a.id LIMIT %(limit)s"""


class AgentThen(Struct, frozen=True):
    """An agent, and the coordinate of the last event of its stream."""

    agent: AgentRow
    position: str


class AgentPlace(Struct, frozen=True, array_like=True):
    """Where a page of agents ended."""

    created_at: datetime
    id: str


_FIRST = AgentPlace(datetime.fromisoformat("0001-01-01T00:00:00+00:00"), "")


async def depths_of(reading: Reading, agent_ids: list[str]) -> dict[str, int]:
    """How many items wait in each of some mailboxes, now."""
    return dict(await reading.rows(_DEPTHS, ids=agent_ids))


async def agent(reading: Reading, agent_id: str) -> AgentThen:
    """One agent.

    Raises:
        NotFound: there is no such agent, or it was deleted.
    """
    found = await _one(reading, agent_id) if is_id(agent_id) else None
    if found is None or found.agent.lifecycle == "deleted":
        raise NotFound(f"there is no agent {agent_id[:128]}")
    return found


async def agents(
    reading: Reading, after: AgentPlace | None, limit: int
) -> tuple[list[AgentThen], AgentPlace | None]:
    """A page of agents, oldest first, and where it ends if more follow."""
    place = after or _FIRST
    values = {"created_at": place.created_at, "id": place.id, "limit": limit + 1}
    if reading.at is None:
        rows = await reading.rows(_PAGE, **values)
        page = [AgentThen(_agent_of(text), position) for text, position in rows[:limit]]
        last = page[-1].agent if page else None
        end = AgentPlace(last.created_at, last.id) if last else None
        return page, end if len(rows) > limit else None
    born = await reading.rows(_BORN, **values, **reading.past())
    then = [await _one(reading, agent_id) for agent_id, _ in born[:limit]]
    page = [one for one in then if one is not None and one.agent.lifecycle != "deleted"]
    end = AgentPlace(born[limit - 1][1], born[limit - 1][0]) if len(born) > limit else None
    return page, end


async def _one(reading: Reading, agent_id: str) -> AgentThen | None:
    if reading.at is None:
        rows = await reading.rows(_ONE, id=agent_id)
        return AgentThen(_agent_of(rows[0][0]), rows[0][1]) if rows else None
    past = await past_of(reading.database, agent_stream(agent_id), reading.at)
    if past is None or past.agent is None:
        return None
    return AgentThen(past.agent, str(past.coordinate))
