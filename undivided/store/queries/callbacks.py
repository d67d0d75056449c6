"""What agents will hear of later, now and as it was."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from undivided.domain.recorded import agent_stream
from undivided.domain.state.callback import CallbackRow
from undivided.store.codec import row_decoder
from undivided.store.database import TENANT, Connection
from undivided.store.queries.reading import Reading
from undivided.store.queries.refolded import as_it_was

_callback_of = row_decoder(CallbackRow)
_OPEN = """
SELECT to_jsonb(c)::text FROM callbacks c
 WHERE c.tenant = %s AND c.agent_id = %s AND c.status = 'pending'
 ORDER BY c.registered_at, c.id"""
_PAGE = """
SELECT to_jsonb(c)::text,
       (n.txid, n.position) <= (%(txid)s, %(position)s)
  FROM callbacks c
  JOIN events b ON b.tenant = c.tenant AND b.stream = 'agent:' || c.agent_id
   AND b.version = c.version
  JOIN events n ON n.tenant = c.tenant AND n.stream = 'agent:' || c.agent_id
   AND n.version = c.changed_version
 WHERE c.tenant = %(tenant)s AND (b.txid, b.position) <= (%(txid)s, %(position)s)
   AND (%(agent)s::text IS NULL OR c.agent_id = %(agent)s)
   AND (%(kinds)s::text[] IS NULL OR c.type = ANY(%(kinds)s))
   AND (%(now)s = false OR %(statuses)s::text[] IS NULL OR c.status = ANY(%(statuses)s))
   AND (c.registered_at, c.id) < (%(at)s, %(id)s)
 ORDER BY c.registered_at DESC, c.id DESC LIMIT %(limit)s"""


class Place(Struct, frozen=True, array_like=True):
    """Where a page ended."""

    at: datetime
    id: str


_NEWEST = Place(datetime.fromisoformat("9999-01-01T00:00:00+00:00"), "")


class WantedCallbacks(Struct, frozen=True, kw_only=True):
    """Which callbacks, and which page."""

    agent_id: str | None = None
    kinds: Sequence[str] | None = None
    statuses: Sequence[str] | None = None
    before: Place | None = None
    limit: int = 50


async def open_callbacks(connection: Connection, agent_id: str) -> tuple[CallbackRow, ...]:
    """What an agent still waits to hear of, the oldest first; not what it was told is overdue."""
    cursor = await connection.execute(_OPEN, (TENANT, agent_id))
    return tuple(_callback_of(text) for (text,) in await cursor.fetchall())


async def callbacks(
    reading: Reading, wanted: WantedCallbacks
) -> tuple[list[CallbackRow], Place | None]:
    """A page of callbacks, newest first, and where it ends if more follow.

    Of the past, a page may hold fewer than asked for although more follow: what has changed since
    is folded again, and only then it shows whether it was wanted.
    """
    place = wanted.before or _NEWEST
    rows = await reading.rows(
        _PAGE, agent=wanted.agent_id, now=reading.at is None,
        kinds=None if wanted.kinds is None else list(wanted.kinds),
        statuses=None if wanted.statuses is None else list(wanted.statuses),
        at=place.at, id=place.id, limit=wanted.limit + 1, **reading.past(),
    )  # fmt: skip
    page = [(_callback_of(text), unchanged) for text, unchanged in rows[: wanted.limit]]
    end = None
    if len(rows) > wanted.limit:
        last, _ = page[-1]
        end = Place(last.registered_at, last.id)
    then = [row if unchanged else await _then(reading, row) for row, unchanged in page]
    found = (row for row in then if row is not None)
    return [row for row in found if _is_wanted(row, wanted)], end


def _is_wanted(row: CallbackRow, wanted: WantedCallbacks) -> bool:
    return wanted.statuses is None or status_of(row) in wanted.statuses


def status_of(row: CallbackRow) -> str:
    """The status of a callback as people call it."""
    return str(row.phase.__struct_config__.tag)


async def _then(reading: Reading, row: CallbackRow) -> CallbackRow | None:
    found: CallbackRow | None = await as_it_was(
        reading, "callbacks", row.id, agent_stream(row.agent_id)
    )
    return found
