"""One item, whole."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from undivided.domain.errors import NotFound
from undivided.domain.state.item import ItemRow, Merged
from undivided.domain.state.session import ActivityRow, DecisionRow
from undivided.store.codec import row_decoder
from undivided.store.history import rows_of_items
from undivided.store.queries.reading import Reading, is_id


class ItemThen(Struct, frozen=True, kw_only=True):
    """An item with its decisions (oldest first) and what was done about it.

    That it was considered beside others is an activity of its own, and not among them.

    `position` is the coordinate of the last event about it.
    """

    item: ItemRow
    decisions: tuple[DecisionRow, ...] = ()
    activities: tuple[ActivityRow, ...] = ()
    position: str = ""
    joined: tuple[ItemRow, ...] = ()
    """What has been merged into it, in order of arrival."""


_item_then, _item_of = row_decoder(ItemThen), row_decoder(ItemRow)
_FAMILY = """
WITH RECURSIVE family AS (
  SELECT i.* FROM items i WHERE i.tenant = %(tenant)s AND i.merged_into = %(id)s
  UNION SELECT i.* FROM items i JOIN family f ON i.merged_into = f.id AND i.tenant = f.tenant)
SELECT to_jsonb(f)::text FROM family f ORDER BY f.seq"""

_ONE = """
SELECT jsonb_build_object('item', to_jsonb(i),
  'decisions', (SELECT coalesce(jsonb_agg(to_jsonb(d) ORDER BY d.version), '[]')
     FROM decisions d WHERE d.tenant = i.tenant AND d.item_id = i.id),
  'activities', (SELECT coalesce(jsonb_agg(to_jsonb(a) ORDER BY a.started_at, a.id), '[]')
     FROM activities a
    WHERE a.tenant = i.tenant AND (a.item_id = i.id OR a.id = i.phase->>'turn_id')
      AND a.type <> 'deliberation'),
  'position', coalesce(
    (SELECT e.txid || '-' || e.position FROM decisions d
       JOIN events e ON e.tenant = d.tenant AND e.stream = 'agent:' || d.agent_id
        AND e.version = d.version
      WHERE d.tenant = i.tenant AND d.item_id = i.id ORDER BY d.version DESC LIMIT 1),
    (SELECT e.txid || '-' || e.position FROM events e WHERE e.id = i.accepted_by::uuid)))::text
  FROM items i WHERE i.tenant = %(tenant)s AND i.id = %(id)s"""


async def item(reading: Reading, item_id: str) -> ItemThen:
    """One item.

    Raises:
        NotFound: there is no such item, or was none at that moment.
    """
    found = await _find(reading, item_id) if is_id(item_id) else None
    if found is None:
        raise NotFound(f"there is no item {item_id[:128]}")
    return found


async def survivor(reading: Reading, then: ItemThen) -> ItemThen:
    """The item that this one was merged into, however often; itself if it was not."""
    while isinstance(then.item.phase, Merged):
        then = await item(reading, then.item.phase.into)
    return then


async def _find(reading: Reading, item_id: str) -> ItemThen | None:
    if reading.at is None:
        found = await reading.rows(_ONE, id=item_id)
        if not found:
            return None
        then = _item_then(found[0][0])
        return replace(then, joined=await _joined(reading, item_id)) if then.item.merged else then
    rows, last = await rows_of_items(reading.database, [item_id], reading.at)
    row = rows.get(("items", item_id))
    if row is None:
        return None
    decisions = [r for (table, _), r in rows.items() if table == "decisions"]
    activities = [r for (table, _), r in rows.items() if table == "activities" and r is not None]
    return ItemThen(
        item=row,
        decisions=tuple(sorted(decisions, key=lambda d: d.version)),
        activities=tuple(sorted(activities, key=lambda a: (a.started_at, a.id))),
        position=str(last),
        joined=await _joined_then(reading, row) if row.merged else (),
    )


async def _joined(reading: Reading, item_id: str) -> tuple[ItemRow, ...]:
    rows = await reading.rows(_FAMILY, id=item_id)
    return tuple(_item_of(text) for (text,) in rows)


async def _joined_then(reading: Reading, row: ItemRow) -> tuple[ItemRow, ...]:
    """What had been merged into an item by then: some of what has been by now."""
    if reading.at is None:
        return ()
    ids = [one.id for one in await _joined(reading, row.id)]
    rows, _ = await rows_of_items(reading.database, ids, reading.at)
    then = (one for (table, _), one in rows.items() if table == "items" and one is not None)
    merged = (one for one in then if one.id != row.id and isinstance(one.phase, Merged))
    return tuple(sorted(merged, key=lambda one: one.seq))
