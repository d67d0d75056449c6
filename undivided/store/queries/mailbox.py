"""A mailbox as a timeline: what waits, and what became of everything that ever arrived."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from undivided.domain.errors import NotFound
from undivided.domain.recorded import agent_stream
from undivided.domain.state.agent import AgentRow
from undivided.domain.state.item import ItemRow
from undivided.domain.state.session import ActivityRow, DecisionRow
from undivided.store.codec import row_decoder
from undivided.store.history import Past, past_of, rows_of_items, status_of
from undivided.store.queries.reading import Reading, is_id
from undivided.store.queries.shortened import SHORT_ITEM

_LATEST = 2**63 - 1
FIRST_PAGE = 50
_SCAN = 500
"""How many items one step of a filtered look into the past folds."""

_NOW = """
WITH h AS MATERIALIZED (
  SELECT {item}
    FROM items i
   WHERE i.tenant = %(tenant)s AND i.agent_id = %(id)s AND i.seq < %(before)s
     AND (%(types)s::text[] IS NULL OR i.source_type = ANY(%(types)s))
     AND (%(category)s::text IS NULL OR i.category = %(category)s)
     AND (%(statuses)s::text[] IS NULL OR i.status = ANY(%(statuses)s))
   ORDER BY i.seq DESC LIMIT %(limit)s OFFSET %(offset)s),
ids AS MATERIALIZED (SELECT coalesce(array_agg(h.id), '{}') AS these,
  coalesce(array_agg(h.phase->>'turn_id') FILTER (WHERE h.phase ? 'turn_id'), '{}') AS turns
  FROM h)
SELECT json_build_object(
  'position', (SELECT e.txid || '-' || e.position FROM events e
     WHERE e.txid < (SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint + txid_base
                       FROM log_base)
     ORDER BY e.txid DESC, e.position DESC LIMIT 1),
  'agent', row_to_json(a),
  'queue', (SELECT coalesce(json_agg(row_to_json(q) ORDER BY q.priority, q.seq), '[]') FROM (
    SELECT {item}
      FROM items i
     WHERE i.tenant = a.tenant AND i.agent_id = a.id AND i.status = 'queued'
     ORDER BY i.priority, i.seq LIMIT %(queue)s) q),
  'history', (SELECT coalesce(json_agg(row_to_json(h) ORDER BY h.seq DESC), '[]') FROM h),
  'decisions', (SELECT coalesce(json_agg(row_to_json(d) ORDER BY d.version), '[]') FROM (
    SELECT d.id, d.agent_id, d.type, d.rule, d.reasoning, d.item_id, d.turn_id,
           '{}'::json AS inputs, '[]'::json AS losers, d.policy_version, d.version, d.made_at
      FROM decisions d, ids WHERE d.tenant = a.tenant AND d.item_id = ANY(ids.these)) d),
  'activities', (SELECT coalesce(json_agg(row_to_json(v) ORDER BY v.started_at, v.id), '[]')
     FROM activities v, ids
    WHERE v.tenant = a.tenant AND (v.item_id = ANY(ids.these) OR v.id = ANY(ids.turns))
      AND v.type <> 'deliberation'),
  'lost', (SELECT coalesce(json_object_agg(l.status, l.n), '{}') FROM (
    SELECT i.status, count(*) AS n FROM items i
     WHERE i.tenant = a.tenant AND i.agent_id = a.id
       AND i.status IN ('cancelled', 'dead_letter') GROUP BY i.status) l))::text
  FROM agents a
 WHERE a.tenant = %(tenant)s AND a.id = %(id)s AND a.lifecycle <> 'deleted'""".replace(
    "{item}", SHORT_ITEM
)

_FIRST = (
    _NOW.replace(" AND i.seq < %(before)s", "")
    .replace("LIMIT %(limit)s OFFSET %(offset)s", "LIMIT 51")
    .replace("LIMIT %(queue)s", "LIMIT 50")
)
"""The page that is asked for most, its bounds written out: Postgres keeps a statement's plan only
if it looks no dearer than one made anew for the values, and planning is half of this one's time.
"""

_BEFORE = """
SELECT i.id, i.seq FROM items i
 WHERE i.tenant = %(tenant)s AND i.agent_id = %(id)s AND i.seq < %(before)s
   AND (%(types)s::text[] IS NULL OR i.source_type = ANY(%(types)s))
   AND (%(category)s::text IS NULL OR i.category = %(category)s)
 ORDER BY i.seq DESC LIMIT %(limit)s OFFSET %(offset)s"""


_BY_TYPE = """
SELECT i.source_type, count(*) FROM items i
 WHERE i.tenant = %(tenant)s AND i.agent_id = %(id)s AND i.seq < %(before)s
 GROUP BY i.source_type ORDER BY i.source_type"""
LOST = ("cancelled", "dead_letter")
"""How an item can be over that its agent does not count."""


class Wanted(Struct, frozen=True, kw_only=True):
    """Which part of the timeline: filters, and where the page begins."""

    limit: int = FIRST_PAGE
    offset: int = 0
    before: int = _LATEST
    types: list[str] | None = None
    category: str | None = None
    statuses: list[str] | None = None
    by_type: bool = False
    """Whether to count the items of each type, which looks at all that ever arrived."""


class Mailbox(Struct, frozen=True, kw_only=True):
    """The rows of a mailbox; `history` newest first, one more than wanted if more follow."""

    agent: AgentRow
    queue: tuple[ItemRow, ...] = ()
    history: tuple[ItemRow, ...] = ()
    decisions: tuple[DecisionRow, ...] = ()
    activities: tuple[ActivityRow, ...] = ()
    lost: dict[str, int] = {}
    """How many items are over otherwise than completed, by status."""
    by_type: dict[str, int] | None = None
    position: str | None = None


_mailbox_of = row_decoder(Mailbox)


async def mailbox(reading: Reading, agent_id: str, wanted: Wanted) -> Mailbox:
    """A page of an agent's mailbox.

    Raises:
        NotFound: there is no such agent, or was none at that moment.
    """
    found = None
    if is_id(agent_id):
        found = await (_now if reading.at is None else _then)(reading, agent_id, wanted)
    if found is None:
        raise NotFound(f"there is no agent {agent_id[:128]!r}")
    if not wanted.by_type:
        return found
    rows = await reading.rows(_BY_TYPE, id=agent_id, before=found.agent.next_seq)
    return replace(found, by_type=dict(rows))


async def _now(reading: Reading, agent_id: str, wanted: Wanted) -> Mailbox | None:
    first = (wanted.limit, wanted.offset, wanted.before) == (FIRST_PAGE, 0, _LATEST)
    rows = await reading.rows(
        _FIRST if first else _NOW,
        id=agent_id,
        before=wanted.before,
        types=wanted.types,
        category=wanted.category,
        statuses=wanted.statuses,
        limit=wanted.limit + 1,
        offset=wanted.offset,
        queue=wanted.limit,
    )
    return _mailbox_of(rows[0][0]) if rows else None


async def _then(reading: Reading, agent_id: str, wanted: Wanted) -> Mailbox | None:
    if reading.at is None:
        return None
    past = await past_of(reading.database, agent_stream(agent_id), reading.at)
    if past is None or past.agent is None or past.agent.lifecycle == "deleted":
        return None
    history, decided, done = await _history_then(reading, past, agent_id, wanted)
    queue = sorted(
        (item for item in past.items.values() if status_of(item) == "queued"),
        key=lambda item: (item.priority, item.seq),
    )
    lost = {s: n for s, n in past.counts.items() if s in LOST and n}
    return Mailbox(
        agent=past.agent,
        queue=tuple(queue[: wanted.limit]),
        history=tuple(history),
        decisions=tuple(sorted(decided, key=lambda d: d.version)),
        activities=tuple(sorted(done, key=lambda a: (a.started_at, a.id))),
        lost=lost,
        position=str(reading.at),
    )


async def _history_then(
    reading: Reading, past: Past, agent_id: str, wanted: Wanted
) -> tuple[Sequence[ItemRow], list[DecisionRow], list[ActivityRow]]:
    """Items accepted by then; a status is one that an item had then, so those are folded."""
    if past.agent is None or reading.at is None:
        return [], [], []
    before = min(wanted.before, past.agent.next_seq)
    filtered = wanted.statuses is not None
    skip = wanted.offset if filtered else 0
    history: list[ItemRow] = []
    decided: list[DecisionRow] = []
    done: list[ActivityRow] = []
    while len(history) <= wanted.limit:
        step = _SCAN if filtered else wanted.limit + 1
        found = await reading.rows(
            _BEFORE,
            id=agent_id,
            before=before,
            types=wanted.types,
            category=wanted.category,
            limit=step,
            offset=0 if filtered else wanted.offset,
        )
        rows, _ = await rows_of_items(reading.database, [row[0] for row in found], reading.at)
        for item_id, _seq in found:
            item = rows.get(("items", item_id))
            if item is None or (wanted.statuses and status_of(item) not in wanted.statuses):
                continue
            if skip:
                skip -= 1
                continue
            history.append(item)
        decided += [row for (table, _), row in rows.items() if table == "decisions" and row]
        done += [row for (table, _), row in rows.items() if table == "activities" and row]
        if not filtered or len(found) < step:
            break
        before = found[-1][1]
    return history[: wanted.limit + 1], decided, done
