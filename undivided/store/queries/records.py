"""What an agent decided, and what it did."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from undivided.domain.errors import NotFound
from undivided.domain.recorded import agent_stream
from undivided.domain.scenarios import DELIBERATION
from undivided.domain.state.session import ActivityRow, DecisionRow
from undivided.store.blobs import how_many_fit
from undivided.store.codec import row_decoder
from undivided.store.history import rows_of_items
from undivided.store.queries.reading import Reading, is_id
from undivided.store.queries.refolded import as_it_was
from undivided.store.tail import Logged, logged_rows

_decision_of = row_decoder(DecisionRow)
_activity_of = row_decoder(ActivityRow)
_LATEST = 2**63 - 1

_KNOWN = """
SELECT 1 FROM events
 WHERE tenant = %(tenant)s AND stream = %(stream)s AND version = 1
   AND (txid, position) <= (%(txid)s, %(position)s)"""
_DECISIONS = """
SELECT to_jsonb(d)::text, e.txid || '-' || e.position FROM decisions d
  JOIN events e ON e.tenant = d.tenant AND e.stream = 'agent:' || d.agent_id
   AND e.version = d.version
 WHERE d.tenant = %(tenant)s AND d.agent_id = %(agent)s AND d.version < %(before)s
   AND (e.txid, e.position) <= (%(at_txid)s, %(at_position)s)
 ORDER BY d.version DESC LIMIT %(limit)s"""
_ACTIVITIES = """
SELECT to_jsonb(a)::text FROM activities a
 WHERE a.tenant = %(tenant)s AND a.agent_id = %(agent)s
   AND (a.started_at, a.id) < (%(started_at)s, %(id)s)
   AND (%(types)s::text[] IS NULL OR a.type = ANY(%(types)s))
   AND (%(txid)s = 9223372036854775807 OR EXISTS (
     SELECT 1 FROM turns t
       JOIN events e ON e.tenant = t.tenant AND e.stream = 'session:' || t.session_id
        AND e.version = t.first_version
      WHERE t.tenant = a.tenant AND t.id = a.id AND e.txid <= %(txid)s))
 ORDER BY a.started_at DESC, a.id DESC LIMIT %(limit)s"""

_ONE_ACTIVITY = """
SELECT to_jsonb(a)::text FROM activities a
 WHERE a.tenant = %(tenant)s AND a.agent_id = %(agent)s AND a.id = %(id)s"""
_STEPS = """
SELECT 0, e.txid, e.position, e.id::text, e.stream, e.version, e.type, e.schema, e.data::text,
       e.meta::text, e.recorded_at
  FROM turns t
  JOIN events e ON e.tenant = t.tenant AND e.stream = 'session:' || t.session_id
   AND e.version >= t.first_version AND (t.last_version IS NULL OR e.version <= t.last_version)
 WHERE t.tenant = %(tenant)s AND t.id = %(id)s AND e.version > %(after)s
   AND e.data->>'turn_id' = t.id AND (e.txid, e.position) <= (%(txid)s, %(position)s)
 ORDER BY e.version LIMIT %(limit)s"""


class DecisionThen(Struct, frozen=True):
    """A decision, and the coordinate of the event that carried it out."""

    decision: DecisionRow
    position: str


class ActivityPlace(Struct, frozen=True, array_like=True):
    """Where a page of activities ended."""

    started_at: datetime
    id: str


async def check_agent(reading: Reading, agent_id: str) -> None:
    """Make sure that there is, or was, such an agent; a deleted one can still be read about.

    Raises:
        NotFound: there never was, or was none at that moment.
    """
    if is_id(agent_id) and await reading.rows(
        _KNOWN, stream=agent_stream(agent_id), **reading.past()
    ):
        return
    raise NotFound(f"there is no agent {agent_id[:128]!r}")


async def decisions(
    reading: Reading, agent_id: str, before: int | None, limit: int
) -> tuple[list[DecisionThen], int | None]:
    """A page of an agent's decisions, newest first, and the version it ends at if more follow."""
    past = reading.past()
    rows = await reading.rows(
        _DECISIONS,
        agent=agent_id,
        before=_LATEST if before is None else before,
        limit=limit + 1,
        at_txid=past["txid"],
        at_position=past["position"],
    )
    page = [DecisionThen(_decision_of(text), position) for text, position in rows[:limit]]
    return page, page[-1].decision.version if len(rows) > limit else None


async def activities(
    reading: Reading,
    agent_id: str,
    before: ActivityPlace | None,
    limit: int,
    types: list[str] | None = None,
) -> tuple[list[ActivityRow], ActivityPlace | None]:
    """A page of an agent's activities, newest first, and where it ends if more follow."""
    place = before or ActivityPlace(datetime.fromisoformat("9999-01-01T00:00:00+00:00"), "")
    rows = await reading.rows(
        _ACTIVITIES,
        agent=agent_id,
        started_at=place.started_at,
        id=place.id,
        types=types,
        limit=limit + 1,
        **reading.past(),
    )
    page = [_activity_of(row[0]) for row in rows[:limit]]
    last = page[-1] if len(rows) > limit else None
    end = None if last is None else ActivityPlace(last.started_at, last.id)
    return await _as_they_were(reading, page), end


async def _as_they_were(reading: Reading, page: list[ActivityRow]) -> list[ActivityRow]:
    if reading.at is None:
        return page
    ids = list({row.item_id for row in page})
    rows, _ = await rows_of_items(reading.database, ids, reading.at)
    then = [
        await as_it_was(reading, "activities", row.id, agent_stream(row.agent_id))
        if row.type == DELIBERATION
        else rows.get(("activities", row.id))
        for row in page
    ]
    return [row for row in then if row is not None]


async def steps(
    reading: Reading, activity_id: str, after: int, limit: int
) -> tuple[list[Logged], bool]:
    """A page of an activity's steps in order, from behind version `after`; whether more follow."""
    rows = await reading.rows(
        _STEPS, id=activity_id, after=after, limit=limit + 1, **reading.past()
    )
    fitting = await how_many_fit(reading.database, [row[8] for row in rows[:limit]])
    return await logged_rows(reading.database, rows[:fitting]), len(rows) > fitting


async def activity(reading: Reading, agent_id: str, activity_id: str) -> ActivityRow:
    """One activity of an agent.

    Raises:
        NotFound: the agent has none of this id, or had none by then.
    """
    rows = (
        await reading.rows(_ONE_ACTIVITY, agent=agent_id, id=activity_id)
        if is_id(activity_id)
        else []
    )
    found = await _as_they_were(reading, [_activity_of(row[0]) for row in rows])
    if not found:
        raise NotFound(f"agent {agent_id[:128]!r} has no activity {activity_id[:128]!r}")
    return found[0]
