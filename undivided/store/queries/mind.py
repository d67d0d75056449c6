"""An agent's mind: what it attends to, what waits, what it decided lately, what it remembers.

Read in one statement; of an item that waits only the beginning of its content is fetched. (600
stored characters hold at least the 100 that a summary shows, however many of them are escaped.)
The limits are written out and no parameters, so that Postgres keeps the statement's plan.
"""

from __future__ import annotations

from msgspec import Struct

from undivided.domain.errors import NotFound
from undivided.domain.recorded import agent_stream, session_stream
from undivided.domain.state.agent import AgentRow, FlightRow, Idle, MemoryRow
from undivided.domain.state.item import ItemRow
from undivided.domain.state.session import DecisionRow, TurnRow
from undivided.store.codec import row_decoder
from undivided.store.history import past_of, status_of
from undivided.store.queries.reading import Reading, is_id
from undivided.store.queries.records import decisions
from undivided.store.queries.shortened import SHORT_ITEM

QUEUE_SHOWN = 50
DECISIONS_SHOWN = 10

_NOW = """
SELECT json_build_object(
  'position', (SELECT e.txid || '-' || e.position FROM events e
     WHERE e.txid < (SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint + txid_base
                       FROM log_base)
     ORDER BY e.txid DESC, e.position DESC LIMIT 1),
  'agent', row_to_json(a),
  'flight', (SELECT row_to_json(f) FROM flights f WHERE f.tenant = a.tenant AND f.id = a.id),
  'turn', (SELECT row_to_json(t) FROM turns t
     WHERE t.tenant = a.tenant AND t.id = a.attention->>'turn_id'),
  'focus', (SELECT coalesce(json_agg(row_to_json(q) ORDER BY q.seq), '[]') FROM (
    SELECT {item}
      FROM jsonb_array_elements_text(coalesce(a.attention->'item_ids', '[]')) x(id)
      JOIN items i ON i.tenant = a.tenant AND i.id = x.id) q),
  'queue', (SELECT coalesce(json_agg(row_to_json(q) ORDER BY q.priority, q.seq), '[]') FROM (
    SELECT {item}
      FROM items i
     WHERE i.tenant = a.tenant AND i.agent_id = a.id AND i.status = 'queued'
     ORDER BY i.priority, i.seq LIMIT 50) q),
  'deferred', (SELECT coalesce(json_agg(row_to_json(q) ORDER BY q.priority, q.seq), '[]') FROM (
    SELECT {item}
      FROM items i
     WHERE i.tenant = a.tenant AND i.agent_id = a.id AND i.status = 'deferred'
     ORDER BY i.priority, i.seq LIMIT 50) q),
  'decisions', (SELECT coalesce(json_agg(row_to_json(d) ORDER BY d.version), '[]') FROM (
    SELECT d.* FROM decisions d WHERE d.tenant = a.tenant AND d.agent_id = a.id
     ORDER BY d.version DESC LIMIT 10) d),
  'memories', (SELECT coalesce(json_agg(row_to_json(m) ORDER BY m.noted_at, m.id), '[]')
     FROM memories m WHERE m.tenant = a.tenant AND m.agent_id = a.id))::text
  FROM agents a
 WHERE a.tenant = %(tenant)s AND a.id = %(id)s AND a.lifecycle <> 'deleted'""".replace(
    "{item}", SHORT_ITEM
)


class Mind(Struct, frozen=True, kw_only=True):
    """The rows of one agent's mind; `decisions` are the newest, oldest of them first."""

    agent: AgentRow
    flight: FlightRow | None = None
    turn: TurnRow | None = None
    focus: tuple[ItemRow, ...] = ()
    queue: tuple[ItemRow, ...] = ()
    deferred: tuple[ItemRow, ...] = ()
    decisions: tuple[DecisionRow, ...] = ()
    memories: tuple[MemoryRow, ...] = ()
    position: str | None = None


_mind_of = row_decoder(Mind)


async def mind(reading: Reading, agent_id: str) -> Mind:
    """An agent's mind.

    Raises:
        NotFound: there is no such agent, or was none at that moment.
    """
    found = None
    if is_id(agent_id):
        found = await (_now if reading.at is None else _then)(reading, agent_id)
    if found is None:
        raise NotFound(f"there is no agent {agent_id[:128]!r}")
    return found


async def _now(reading: Reading, agent_id: str) -> Mind | None:
    rows = await reading.rows(_NOW, id=agent_id)
    return _mind_of(rows[0][0]) if rows else None


async def _then(reading: Reading, agent_id: str) -> Mind | None:
    if reading.at is None:
        return None
    past = await past_of(reading.database, agent_stream(agent_id), reading.at)
    if past is None or past.agent is None or past.agent.lifecycle == "deleted":
        return None
    attention, turn = past.agent.attention, None
    if not isinstance(attention, Idle):
        session = await past_of(reading.database, session_stream(attention.session_id), reading.at)
        turn = session.turn if session is not None else None
    in_focus = () if isinstance(attention, Idle) else attention.item_ids
    queue, deferred = (
        sorted(
            (item for item in past.items.values() if status_of(item) == status),
            key=lambda item: (item.priority, item.seq),
        )
        for status in ("queued", "deferred")
    )
    decided, _ = await decisions(reading, agent_id, None, DECISIONS_SHOWN)
    return Mind(
        agent=past.agent,
        flight=past.flight,
        turn=turn,
        focus=tuple(past.items[item_id] for item_id in in_focus if item_id in past.items),
        queue=tuple(queue[:QUEUE_SHOWN]),
        deferred=tuple(deferred[:QUEUE_SHOWN]),
        decisions=tuple(one.decision for one in reversed(decided)),
        memories=tuple(sorted(past.memories.values(), key=lambda m: (m.noted_at, m.id))),
        position=str(reading.at),
    )
