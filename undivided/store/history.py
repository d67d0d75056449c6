"""Time travel: a stream folded again, up to a coordinate.

What is folded is what is still open at that moment (the agent, its flight, what waits, the
session and its turn), bounded however long the stream is; what is over by then is found by its
own events (`events_of_items`). Snapshots are a cache by stream and reducer version: deleting all
of them changes nothing but time.
"""

from __future__ import annotations

from msgspec import Struct

from undivided.domain.coordinates import ORIGIN, Coordinate
from undivided.domain.placed import Placed
from undivided.domain.recorded import Meta, Recorded
from undivided.domain.state.agent import AgentRow, FlightRow, MemoryRow
from undivided.domain.state.heartbeat import HeartbeatRow
from undivided.domain.state.item import TERMINAL, ItemRow
from undivided.domain.state.session import SessionRow, TurnOver, TurnRow
from undivided.projections.items import keys as touched_items
from undivided.projections.table import PROJECTIONS, Rows, fold
from undivided.store.blobs import blob_texts
from undivided.store.codec import decode_event, encode, row_decoder
from undivided.store.database import Database
from undivided.store.horizon import BadCoordinate

PAGE = 1_000
SNAPSHOT_EVERY = 1_000
SNAPSHOT_LIMIT = 4 * 1024 * 1024
"""Bytes; a larger state is quicker to fold again than worth keeping."""
REDUCERS = "past-2:" + ".".join(str(p.version) for p in PROJECTIONS)
"""Names what a snapshot was folded by; raised by any reducer that changes meaning."""

_NEWEST_SNAPSHOT = """
SELECT state::text FROM snapshots
 WHERE tenant = %s AND stream = %s AND reducer = %s AND (txid, position) <= (%s, %s)
 ORDER BY version DESC LIMIT 1"""
_KEEP_SNAPSHOT = """
INSERT INTO snapshots (tenant, stream, reducer, version, txid, position, state)
VALUES (%s, %s, %s, %s, %s, %s, %s::jsonb) ON CONFLICT DO NOTHING"""
UNDECIDED = """(
        e.type IN ('item.resurfaced','item.reprioritized','focus.answered','turn.stop_requested')
        OR (e.type = 'item.picked' AND e.data->'decision'->>'type' = 'triage'))"""
"""What is about an item or a turn and has no decision of its own by which it could be found."""
_EVENTS = """
SELECT txid, position, id::text, stream, version, type, schema, data::text, meta::text, recorded_at
  FROM events WHERE tenant = %s AND stream = %s AND version > %s
 ORDER BY version LIMIT %s"""
_OF_ITEMS = """
SELECT txid, position, id::text, stream, version, type, schema, data::text, meta::text, recorded_at
  FROM (
    SELECT e.* FROM items i JOIN events e ON e.id = i.accepted_by::uuid
     WHERE i.tenant = %(tenant)s AND i.id = ANY(%(ids)s)
    UNION ALL
    SELECT e.* FROM decisions d
      JOIN events e ON e.tenant = d.tenant AND e.stream = 'agent:' || d.agent_id
       AND e.version = d.version
     WHERE d.tenant = %(tenant)s AND d.item_id = ANY(%(ids)s)
    UNION
    SELECT e.* FROM items j
      JOIN decisions d ON d.tenant = j.tenant AND d.item_id = j.id AND d.type = 'merge'
      JOIN events e ON e.tenant = d.tenant AND e.stream = 'agent:' || d.agent_id
       AND e.version = d.version
     WHERE j.tenant = %(tenant)s AND j.merged_into = ANY(%(ids)s)
    UNION
    SELECT e.* FROM events e
     WHERE e.tenant = %(tenant)s
       AND {undecided}
       AND coalesce(e.data->>'item_id', e.data->>'turn_id') = ANY(%(ids)s || ARRAY(
         SELECT DISTINCT d.turn_id FROM decisions d
          WHERE d.tenant = %(tenant)s AND d.item_id = ANY(%(ids)s) AND d.turn_id IS NOT NULL))) e
 WHERE (txid, position) <= (%(txid)s, %(position)s)
 ORDER BY stream, version""".replace("{undecided}", UNDECIDED)


class Past(Struct, kw_only=True):
    """One stream as it was: `version` and coordinate of its last event, and what was open."""

    version: int = 0
    txid: int = 0
    position: int = 0
    agent: AgentRow | None = None
    flight: FlightRow | None = None
    session: SessionRow | None = None
    turn: TurnRow | None = None
    items: dict[str, ItemRow] = {}
    memories: dict[str, MemoryRow] = {}
    counts: dict[str, int] = {}
    """How many items were in each status."""
    heartbeat: HeartbeatRow | None = None

    @property
    def coordinate(self) -> Coordinate:
        """Of the last event that was folded."""
        return Coordinate(self.txid, self.position)


_past_of = row_decoder(Past)
_meta_of = row_decoder(Meta)


class Dated(Struct, frozen=True):
    """An event with its place in the log."""

    coordinate: Coordinate
    recorded: Recorded | None
    """None where the event's name is not known here."""
    version: int


async def past_of(database: Database, stream: str, at: Coordinate) -> Past | None:
    """A stream as it was at a coordinate; None if it had not begun.

    Raises:
        BadCoordinate: events that would have to be folded were pruned.
    """
    past = await _from_snapshot(database, stream, at)
    snapshot = past.version
    while page := await _page(database, stream, past.version):
        for one in page:
            if one.coordinate > at:
                return past if past.version else None
            _take(past, one)
            if past.version - snapshot >= SNAPSHOT_EVERY:
                await _keep(database, stream, past)
                snapshot = past.version
        if len(page) < PAGE:
            break
    return past if past.version else None


async def rows_of_items(
    database: Database, ids: list[str], at: Coordinate
) -> tuple[Rows, Coordinate]:
    """Items with their activities and decisions as they were, and when the last changed."""
    values = {"tenant": database.tenant, "ids": ids, "txid": at.txid, "position": at.position}
    async with database.connection() as connection:
        cursor = await connection.execute(_OF_ITEMS, values)
        found = await cursor.fetchall()
    dated = await _dated(database, found)
    rows: Rows = {}
    fold(rows, [one.recorded for one in dated if one.recorded])
    return rows, max((one.coordinate for one in dated), default=ORIGIN)


async def placed_events(database: Database, found: list[tuple[object, ...]]) -> list[Placed]:
    """Events as a query found them, in the columns of `_EVENTS`; without names unknown here."""
    dated = await _dated(database, found)
    return [Placed(one.coordinate, one.recorded) for one in dated if one.recorded is not None]


async def _from_snapshot(database: Database, stream: str, at: Coordinate) -> Past:
    async with database.connection() as connection:
        cursor = await connection.execute(
            _NEWEST_SNAPSHOT, (database.tenant, stream, REDUCERS, at.txid, at.position)
        )
        row = await cursor.fetchone()
    return _past_of(row[0]) if row else Past()


async def _keep(database: Database, stream: str, past: Past) -> None:
    state = encode(past)
    if len(state) > SNAPSHOT_LIMIT:
        return
    values = (
        database.tenant, stream, REDUCERS, past.version, past.txid, past.position, state.decode()
    )  # fmt: skip
    async with database.connection() as connection:
        await connection.execute(_KEEP_SNAPSHOT, values)


async def _page(database: Database, stream: str, after: int) -> list[Dated]:
    async with database.connection() as connection:
        cursor = await connection.execute(_EVENTS, (database.tenant, stream, after, PAGE))
        found = await cursor.fetchall()
    return await _dated(database, found)


async def _dated(database: Database, found: list[tuple[object, ...]]) -> list[Dated]:
    blobs = await blob_texts(database, [str(row[7]) for row in found])
    dated = []
    for txid, position, event_id, stream, version, name, schema, data, meta, at in found:
        event = decode_event(name, schema, data, blobs)  # type: ignore[arg-type]
        recorded = None
        if event is not None:
            recorded = Recorded(event_id, stream, version, event, _meta_of(meta), at)  # type: ignore[arg-type]
        dated.append(Dated(Coordinate(txid, position), recorded, version))  # type: ignore[arg-type]
    return dated


def _take(past: Past, one: Dated) -> None:
    """Fold one event into what was open before it."""
    if one.version != past.version + 1:
        raise BadCoordinate(
            "position_pruned", "the history before this position was removed; ask for a later one"
        )
    past.version = one.version
    past.txid, past.position = one.coordinate.txid, one.coordinate.position
    if one.recorded is None:
        return
    rows = _open_rows(past, one.recorded)
    changed = fold(rows, [one.recorded])
    for table, key in changed:
        _put(past, table, key, rows[(table, key)])


def _open_rows(past: Past, recorded: Recorded) -> Rows:
    """The rows that the event may touch, as they stand."""
    rows: Rows = {}
    for table, row in (
        ("agents", past.agent),
        ("flights", past.flight),
        ("sessions", past.session),
        ("turns", past.turn),
        ("heartbeats", past.heartbeat),
        *(("items", past.items.get(item_id)) for item_id in touched_items(recorded)),
    ):
        if row is not None:
            rows[(table, row.id)] = row
    return rows


def _put(past: Past, table: str, key: str, row: object) -> None:
    match row:
        case AgentRow():
            past.agent = row
        case FlightRow():
            past.flight = row
        case HeartbeatRow():
            past.heartbeat = row
        case SessionRow():
            past.session = row
        case TurnRow():
            past.turn = None if isinstance(row.phase, TurnOver) else row
        case ItemRow():
            _put_item(past, row)
        case MemoryRow():
            past.memories[key] = row
        case None if table == "memories":
            past.memories.pop(key, None)
        case _:
            pass  # what is over is found by its own events


def _put_item(past: Past, row: ItemRow) -> None:
    before = past.items.pop(row.id, None)
    if before is not None:
        past.counts[status_of(before)] -= 1
    status = status_of(row)
    past.counts[status] = past.counts.get(status, 0) + 1
    if status not in TERMINAL:
        past.items[row.id] = row


def status_of(item: ItemRow) -> str:
    """The literal by which an item's phase is known."""
    return str(item.phase.__struct_config__.tag)
