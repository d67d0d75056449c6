"""What somebody who must choose is shown besides the items: what an agent was doing lately."""

from __future__ import annotations

from undivided.domain.attention import chat_session
from undivided.domain.dialogue import AssistantSaid, UserSaid
from undivided.domain.judging import DECISIONS_TOLD
from undivided.domain.mini_triage import ACTIVITIES_TOLD, MESSAGES_TOLD, Surroundings
from undivided.domain.state.item import ItemRow
from undivided.domain.state.session import ActivityRow, DecisionRow
from undivided.store.codec import row_decoder
from undivided.store.database import Connection, Database
from undivided.store.queries.shortened import SHORT_ITEM
from undivided.store.steps import said_before

QUEUE_TOLD = 50

_item_of, _decision_of = row_decoder(ItemRow), row_decoder(DecisionRow)
_activity_of = row_decoder(ActivityRow)
_QUEUE = """
SELECT row_to_json(q)::text FROM (SELECT {item} FROM items i
  WHERE i.tenant = %s AND i.agent_id = %s AND i.status = 'queued'
  ORDER BY i.priority, i.seq LIMIT %s) q""".replace("{item}", SHORT_ITEM)
_DECISIONS = """
SELECT row_to_json(d)::text FROM decisions d WHERE d.tenant = %s AND d.agent_id = %s
  ORDER BY d.version DESC LIMIT %s"""

_ACTIVITIES = """
SELECT to_jsonb(a)::text FROM activities a WHERE a.tenant = %s AND a.agent_id = %s
  ORDER BY a.started_at DESC, a.id DESC LIMIT %s"""
_NEWEST = 2**31 - 1


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


async def surroundings(connection: Connection, tenant: str, agent_id: str) -> Surroundings:
    """What was said in an agent's chat, done and decided lately, oldest first."""
    said = await said_before(connection, chat_session(agent_id), _NEWEST, MESSAGES_TOLD)
    done = await connection.execute(_ACTIVITIES, (tenant, agent_id, ACTIVITIES_TOLD))
    activities = tuple(_activity_of(text) for (text,) in await done.fetchall())
    made = await connection.execute(_DECISIONS, (tenant, agent_id, DECISIONS_TOLD))
    decisions = tuple(_decision_of(text) for (text,) in await made.fetchall())
    return Surroundings(
        messages=tuple(
            one.content for one in said if isinstance(one, UserSaid | AssistantSaid) and one.content
        ),
        activities=activities[::-1],
        decisions=decisions[::-1],
    )
