"""Single events, what caused them and what they caused."""

from __future__ import annotations

from undivided.domain.coordinates import Coordinate
from undivided.domain.errors import NotFound
from undivided.store.blobs import how_many_fit
from undivided.store.queries.reading import Reading, is_event_id
from undivided.store.tail import Logged, logged_rows

CAUSES_SHOWN = 100

_ONE = """
SELECT 0, e.txid, e.position, e.id::text, e.stream, e.version, e.type, e.schema, e.data::text,
       e.meta::text, e.recorded_at
  FROM events e WHERE e.tenant = %(tenant)s AND e.id = %(id)s
   AND (e.txid, e.position) <= (%(txid)s, %(position)s)"""
_EFFECTS = """
SELECT 0, e.txid, e.position, e.id::text, e.stream, e.version, e.type, e.schema, e.data::text,
       e.meta::text, e.recorded_at
  FROM events e WHERE e.meta ? 'causation' AND e.meta->>'causation' = %(id)s::text
   AND e.tenant = %(tenant)s
   AND (e.txid, e.position) > (%(after_txid)s, %(after_position)s)
   AND (e.txid, e.position) <= (%(txid)s, %(position)s)
 ORDER BY e.txid, e.position LIMIT %(limit)s"""


async def event(reading: Reading, event_id: str) -> Logged:
    """One event.

    Raises:
        NotFound: there is no such event, or was none by then.
    """
    found = await _find(reading, event_id)
    if found is None:
        raise NotFound(f"there is no event {event_id[:60]!r}")
    return found


async def causes(reading: Reading, event_id: str) -> list[Logged]:
    """What caused an event, nearest first, back to where the story began."""
    one = await event(reading, event_id)
    chain: list[Logged] = []
    while len(chain) < CAUSES_SHOWN:
        cause = causation_of(one)
        earlier = await _find(reading, cause) if cause is not None else None
        if earlier is None or earlier.id in {event_id, *(known.id for known in chain)}:
            break
        chain.append(earlier)
        one = earlier
    return chain


async def effects(
    reading: Reading, event_id: str, after: Coordinate, limit: int
) -> tuple[list[Logged], bool]:
    """What an event caused directly, in order, and whether more follow."""
    await event(reading, event_id)
    rows = await reading.rows(
        _EFFECTS,
        id=event_id,
        after_txid=after.txid,
        after_position=after.position,
        limit=limit + 1,
        **reading.past(),
    )
    fitting = await how_many_fit(reading.database, [row[8] for row in rows[:limit]])
    return await logged_rows(reading.database, rows[:fitting]), len(rows) > fitting


async def _find(reading: Reading, event_id: str) -> Logged | None:
    if not is_event_id(event_id):
        return None
    rows = await reading.rows(_ONE, id=event_id, **reading.past())
    found = await logged_rows(reading.database, rows)
    return found[0] if found else None


def causation_of(one: Logged) -> str | None:
    """Id of the event that caused this one, if an event did."""
    cause = one.plain_meta().get("causation")
    return cause if isinstance(cause, str) and is_event_id(cause) else None
