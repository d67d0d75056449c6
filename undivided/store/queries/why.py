"""An item's whole story, from the log.

Every event about an item carries out a decision about it, is its acceptance, or is of the few
types that decide nothing and are found by an index of their own (`events_undecided`). What
passed it over is looked for among the decisions that its agent made while it was in the mailbox.
So a story takes a handful of reads, however long the log is.
"""

from __future__ import annotations

from typing import Any

from undivided.domain.events.items import ItemMerged
from undivided.domain.events.sessions import TurnUpdated
from undivided.domain.placed import Placed
from undivided.domain.state.item import TERMINAL, ItemRow, Merged
from undivided.domain.why.line import Deeds
from undivided.domain.why.story import TOLD_EACH, Story, tellable
from undivided.store.codec import unescape_text
from undivided.store.history import UNDECIDED, placed_events, status_of
from undivided.store.queries.items import item, survivor
from undivided.store.queries.reading import Reading

TURN_STEPS = [
    "turn.started", "turn.suspended", "turn.resumed", "turn.yielded", "turn.updated",
    "turn.nudged", "turn.ended",
]  # fmt: skip
STEPS_READ = 1_000
_BESIDE = 4 * TOLD_EACH

_COLUMNS = """e.txid, e.position, e.id::text, e.stream, e.version, e.type, e.schema, e.data::text,
       e.meta::text, e.recorded_at"""
_DECIDED = """
  JOIN events e ON e.tenant = d.tenant AND e.stream = 'agent:' || d.agent_id
   AND e.version = d.version"""
_OWN = """
SELECT {columns} FROM items i JOIN events e ON e.id = i.accepted_by::uuid
 WHERE i.tenant = %(tenant)s AND i.id = %(id)s AND (e.txid, e.position) <= (%(txid)s, %(position)s)
UNION
SELECT {columns} FROM decisions d {decided}
 WHERE d.tenant = %(tenant)s AND d.item_id = %(id)s
   AND (e.txid, e.position) <= (%(txid)s, %(position)s)
UNION
SELECT {columns} FROM items j
  JOIN decisions d ON d.tenant = j.tenant AND d.item_id = j.id AND d.type = 'merge' {decided}
 WHERE j.tenant = %(tenant)s AND j.merged_into = %(id)s
   AND (e.txid, e.position) <= (%(txid)s, %(position)s)"""
_BESIDES = """
SELECT {columns} FROM decisions d {decided}
 WHERE d.tenant = %(tenant)s AND d.agent_id = %(agent)s
   AND d.version > %(first)s AND d.version <= %(last)s AND d.item_id <> %(id)s
   AND (d.losers ? %(id)s OR d.inputs->>'candidate' = %(id)s)
   AND (e.txid, e.position) <= (%(txid)s, %(position)s)
 ORDER BY d.version LIMIT %(limit)s"""
_UNNAMED = """
SELECT count(*) FROM decisions d
 WHERE d.tenant = %(tenant)s AND d.agent_id = %(agent)s AND d.type = 'pick'
   AND d.version > %(first)s AND d.version < %(picked)s
   AND d.item_id <> %(id)s AND NOT d.losers ? %(id)s"""
_UNDECIDED = """
SELECT {columns} FROM events e
 WHERE e.tenant = %(tenant)s
   AND {undecided}
   AND coalesce(e.data->>'item_id', e.data->>'turn_id') = ANY(%(ids)s)
   AND (e.txid, e.position) <= (%(txid)s, %(position)s)"""
_STEPS = """
SELECT {columns} FROM turns t
  JOIN events e ON e.tenant = t.tenant AND e.stream = 'session:' || t.session_id
   AND e.version >= t.first_version AND (t.last_version IS NULL OR e.version <= t.last_version)
 WHERE t.tenant = %(tenant)s AND t.id = ANY(%(turns)s) AND e.type = ANY(%(types)s)
   AND e.data->>'turn_id' = t.id AND (e.txid, e.position) <= (%(txid)s, %(position)s)
 ORDER BY e.txid, e.position LIMIT %(limit)s"""
_DEEDS = """
SELECT t.id, e.data->>'tool', count(*) FROM turns t
  JOIN events e ON e.tenant = t.tenant AND e.stream = 'session:' || t.session_id
   AND e.version >= t.first_version AND (t.last_version IS NULL OR e.version <= t.last_version)
 WHERE t.tenant = %(tenant)s AND t.id = ANY(%(turns)s)
   AND e.type IN ('model.responded', 'tool_call.finished')
   AND e.data->>'turn_id' = t.id AND (e.txid, e.position) <= (%(txid)s, %(position)s)
 GROUP BY t.id, e.data->>'tool' ORDER BY t.id, min(e.version)"""


async def why(reading: Reading, item_id: str) -> Story:
    """An item's story.

    Raises:
        NotFound: there is no such item, or was none at that moment.
    """
    then = await item(reading, item_id)
    own = await _placed(reading, _OWN, id=item_id)
    own += await _placed(reading, _UNDECIDED, ids=[item_id])
    turns = _turns_of(own)
    own += await _placed(reading, _UNDECIDED, ids=turns)
    besides, unnamed = await _besides(reading, then.item, own)
    steps = await _placed(reading, _STEPS, turns=turns, types=TURN_STEPS, limit=STEPS_READ)
    every = {one.recorded.id: one for one in (*own, *besides, *_about(steps, then.item, own))}
    last = await survivor(reading, then) if isinstance(then.item.phase, Merged) else None
    return Story(
        item=then.item,
        events=tuple(sorted(every.values(), key=lambda one: one.coordinate)),
        deeds=await _deeds(reading, turns),
        unnamed=unnamed,
        survivor=last.item if last is not None else None,
    )


def _turns_of(own: list[Placed]) -> list[str]:
    """The turns that an item was in, in order."""
    named = (getattr(one.recorded.event, "turn_id", None) for one in own)
    return list(dict.fromkeys(turn for turn in named if isinstance(turn, str)))


def _about(steps: list[Placed], row: ItemRow, own: list[Placed]) -> list[Placed]:
    """The steps of its own turns; of one that it was merged into, those that are about it."""
    mine = {
        getattr(one.recorded.event, "turn_id", None)
        for one in own
        if not isinstance(one.recorded.event, ItemMerged)
    }
    return [
        one
        for one in steps
        if getattr(one.recorded.event, "turn_id", None) in mine
        or (isinstance(one.recorded.event, TurnUpdated) and one.recorded.event.item_id == row.id)
    ]


async def _besides(reading: Reading, row: ItemRow, own: list[Placed]) -> tuple[list[Placed], int]:
    """What compared others to it while it was there; and how many picks do not name it."""
    mine = [one for one in own if getattr(one.recorded.event, "item_id", None) == row.id]
    versions = [one.recorded.version for one in mine]
    if not versions:
        return [], 0
    over = status_of(row) in TERMINAL
    values = {"id": row.id, "agent": row.agent_id, "first": min(versions)}
    last = max(versions) if over else 2**63 - 1
    besides = await _placed(reading, _BESIDES, last=last, limit=_BESIDE, **values)
    decided = [one.recorded.version for one in mine if one.recorded.version > min(versions)]
    picked = min(decided, default=await _newest(reading, row))
    counted = await reading.rows(_UNNAMED, picked=picked, **values)
    return besides, int(counted[0][0])


async def _newest(reading: Reading, row: ItemRow) -> int:
    """The last version of its agent's stream in this reading."""
    rows = await reading.rows(
        """SELECT coalesce(max(version), 0) FROM (
             SELECT version FROM events WHERE tenant = %(tenant)s AND stream = %(stream)s
              AND (txid, position) <= (%(txid)s, %(position)s)
              ORDER BY version DESC LIMIT 1) v""",
        stream=f"agent:{row.agent_id}",
        **reading.past(),
    )
    return int(rows[0][0]) + 1


async def _deeds(reading: Reading, turns: list[str]) -> dict[str, Deeds]:
    rows = await reading.rows(_DEEDS, turns=turns, **reading.past()) if turns else []
    responses = {turn: times for turn, tool, times in rows if tool is None}
    tools: dict[str, list[tuple[str, int]]] = {}
    for turn, tool, times in rows:
        if tool is not None:
            tools.setdefault(turn, []).append((unescape_text(tool), times))
    return {
        turn: Deeds(responses.get(turn, 0), tuple(tools.get(turn, ())))
        for turn in {*responses, *tools}
    }


async def _placed(reading: Reading, statement: str, **values: Any) -> list[Placed]:
    whole = statement.replace("{columns}", _COLUMNS).replace("{decided}", _DECIDED)
    whole = whole.replace("{undecided}", UNDECIDED)
    rows = await reading.rows(whole, **values, **reading.past())
    placed = await placed_events(reading.database, rows)
    return [one for one in placed if tellable(one.recorded.event)]
