"""What the clock brings to agents, exactly once a slot, however many workers look.

Every worker asks each second which agents are due, and all of them may find the same one. That
does no harm: whoever comes first takes the row lock of the agent's stream, decides, and appends;
that append moves the row's next moment past the present. Whoever waited for the lock reads the
row only then, finds nothing due any more, and appends nothing. A worker that dies in between has
written nothing, and the slot is still due for the next who looks. A slot that passed while nobody
worked is in the row still: it brings one beat, not one for each slot.

An agent in deep sleep that something has reached is due at its ordinary pace. That is looked for
now and then, by `asleep`, and not by every acceptance, which would have one row more to write.
"""

from __future__ import annotations

from msgspec.structs import replace

from undivided.domain.beats import CLOCK, Overdue, Seen, what_there_is
from undivided.domain.callbacks import overdue
from undivided.domain.events.items import StimulusAccepted
from undivided.domain.recorded import Meta
from undivided.domain.ringing import BRINGS, rings
from undivided.domain.state.agent import Focused
from undivided.domain.state.heartbeat import HeartbeatRow
from undivided.domain.state.item import ItemRow
from undivided.domain.stimuli import BY_CLOCK, BY_PERSON, HEARTBEAT
from undivided.store.commands.outlet import Outlet
from undivided.store.database import TENANT, Database
from undivided.store.fresh import fresh_id
from undivided.store.log import AgentTx
from undivided.store.queries.callbacks import open_callbacks

BY = Meta(actor=CLOCK)
BEATS_SEEN = 100

_DUE = """
SELECT h.id FROM heartbeats h
 WHERE h.tenant = %s AND h.due_at <= clock_timestamp() ORDER BY random() LIMIT %s"""
_ASLEEP = """
SELECT h.id FROM heartbeats h JOIN agents a ON a.tenant = h.tenant AND a.id = h.id
 WHERE h.tenant = %s AND h.awake_at <= clock_timestamp() AND h.enabled
   AND h.lifecycle = 'started' AND a.changed_at > h.judged_at LIMIT %s"""
_NEWS = """
SELECT EXISTS (SELECT 1 FROM items i
 WHERE i.tenant = %s AND i.agent_id = %s AND i.seq >= %s AND i.source_type <> ALL(%s))"""


async def due(database: Database, limit: int) -> list[str]:
    """Agents to which the clock brings something now."""
    return await _ids(database, _DUE, limit)


async def asleep(database: Database, limit: int) -> list[str]:
    """Agents that would sleep on although something has reached them."""
    return await _ids(database, _ASLEEP, limit)


async def ring(outlet: Outlet, agent_id: str) -> bool:
    """Bring an agent what is due; answers whether anything was, still."""
    async with outlet.log.locked(agent_id) as tx:
        row: HeartbeatRow | None = await tx.row("heartbeats", agent_id)
        if row is None:
            return False
        item_ids = [fresh_id("mbx") for _ in BRINGS]
        seen = await seen_by(tx, row)
        events = rings(tx.agent, row, seen, item_ids)
        if not events:
            return False
        await tx.append([tx.addition(*events)], BY, known={("heartbeats", agent_id): row})
    if any(isinstance(event, StimulusAccepted) for event in events):
        outlet.wake(tx.agent)
    return True


async def seen_by(tx: AgentTx, row: HeartbeatRow) -> Seen:
    """What is known about the agent at this moment, under its lock."""
    agent, now = tx.agent, tx.view.now
    beats = await tx.waiting((HEARTBEAT,), BEATS_SEEN) if agent.waiting > 0 else ()
    seen = Seen(
        now=now,
        there=what_there_is(agent, len(beats), await _overdue(tx)),
        person=await _person(tx),
        beat=await _item(tx, row.item_id),
        older=beats[0] if beats else None,
    )
    if row.consolidate_at is None or row.consolidate_at > now:
        return seen
    consolidation = await _item(tx, row.consolidation_item_id)
    return replace(seen, consolidation=consolidation, news=await _news(tx, row.consolidated_seq))


async def _overdue(tx: AgentTx) -> tuple[Overdue, ...]:
    """What should have reached the agent by now; the beat that tells of it names it."""
    rows = await open_callbacks(tx.connection, tx.agent.id)
    found = (overdue(row, tx.view.now) for row in rows)
    return tuple(one for one in found if one is not None)


async def _person(tx: AgentTx) -> bool:
    """Whether a person waits for an answer; a turn that itself waits keeps nobody waiting."""
    attention = tx.agent.attention
    if tx.agent.waiting > 0 and await tx.waiting(BY_PERSON, 1):
        return True
    if not isinstance(attention, Focused) or not attention.item_ids:
        return False
    item = await _item(tx, attention.item_ids[0])
    return item is not None and item.source_type in BY_PERSON


async def _item(tx: AgentTx, item_id: str | None) -> ItemRow | None:
    item: ItemRow | None = None if item_id is None else await tx.row("items", item_id)
    return item


async def _news(tx: AgentTx, since_seq: int) -> bool:
    cursor = await tx.connection.execute(_NEWS, (TENANT, tx.agent.id, since_seq, list(BY_CLOCK)))
    row = await cursor.fetchone()
    return row is not None and bool(row[0])


async def _ids(database: Database, statement: str, limit: int) -> list[str]:
    async with database.connection() as connection:
        cursor = await connection.execute(statement.encode(), (database.tenant, limit))
        return [str(row[0]) for row in await cursor.fetchall()]
