"""A batch: events numbered, folded and put into statements that leave in one message.

In a pipeline a statement that fails stops all that follow it, the COMMIT as well, and what has
no BEGIN is one transaction up to the end of its message. So the guards come first, and then all
events and rows in one statement: what a statement costs before it has done anything is most of
what a row costs. Each combination of changes is a statement of its own: two dozen in ordinary
use, bounded by what events can do to rows (`row_statements.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cache
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Raw, Struct

from undivided.domain.events.catalogue import Event
from undivided.domain.recorded import Meta, Recorded
from undivided.projections.table import Rows, touched
from undivided.store.codec import encode, encode_event, escape_text, name_of
from undivided.store.exchange import Call, Statement, text_array
from undivided.store.fresh import fresh_event_id
from undivided.store.row_statements import Shape, row_changes, sql_of

_to_json = msgspec.json.Encoder().encode


class Addition(Struct, frozen=True):
    """Events for one stream that must be at `expected` (0: it must not exist yet).

    `meta`: why they are there, if that is something else than the append as a whole.
    """

    stream: str
    expected: int
    events: tuple[Event, ...]
    meta: Meta | None = None


class Fence(Struct, frozen=True):
    """The flight in whose name an append is made."""

    agent_id: str
    epoch: int


class Write(Struct):
    """What one append sends, and what it leaves: `rows` are those that changed.

    The last row that `calls[told]` answers says which coordinate it got.
    """

    calls: tuple[Call, ...]
    told: int
    events: tuple[Recorded, ...]
    rows: Rows
    blobs: dict[str, bytes]


def number(additions: Sequence[Addition], meta: Meta, at: datetime) -> tuple[Recorded, ...]:
    """The events in their envelopes, each with its place in its stream."""
    return tuple(
        Recorded(fresh_event_id(), a.stream, a.expected + n, event, a.meta or meta, at)
        for a in additions
        for n, event in enumerate(a.events, start=1)
    )


def missing(rows: Rows, recorded: tuple[Recorded, ...]) -> dict[str, set[str]]:
    """The rows that a fold needs and nobody has in hand, by table."""
    wanted: dict[str, set[str]] = {}
    born: set[tuple[str, str]] = set()
    for one in recorded:
        kind = type(one.event).__name__
        for projection, key in touched(one):
            place = (projection.table, key)
            if kind in projection.births:
                born.add(place)
            elif place not in rows and place not in born:
                wanted.setdefault(projection.table, set()).add(key)
    return wanted


class Folded(Struct):
    """Events and what they do: `rows` are those that changed, `before` those there were."""

    events: tuple[Recorded, ...]
    rows: Rows
    before: Rows


def folded_from(before: Rows, recorded: tuple[Recorded, ...]) -> Folded:
    """Fold events into the rows in hand."""
    rows, changed = dict(before), dict[tuple[str, str], Any]()
    for one in recorded:
        for projection, key in touched(one):
            place = (projection.table, key)
            rows[place] = changed[place] = projection.reduce(key, rows.get(place), one)
    different = {p: row for p, row in changed.items() if p not in before or row != before[p]}
    return Folded(recorded, different, before)


class Guards(Struct, frozen=True):
    """What must hold for an append, besides the versions of its streams.

    `fence`: the flight in whose name it is. `takes`: the agent whose epoch it may raise, if
    nobody has locked its flight before. `edition`: of the rows that it goes by.
    """

    fence: Fence | None = None
    takes: str | None = None
    edition: int | None = None


def written(tenant: str, additions: Sequence[Addition], folded: Folded, guards: Guards) -> Write:
    """The batch in its statements: two if it is small, or one function for all of a large one."""
    if 0 < len(folded.events) <= SMALL:
        return _small(tenant, additions, folded, guards)
    return _large(tenant, additions, folded, guards)


def _small(tenant: str, additions: Sequence[Addition], folded: Folded, guards: Guards) -> Write:
    grown = [a for a in additions if a.events]
    fence = guards.fence
    guard = (
        tenant.encode(),
        (fence.agent_id if fence else guards.takes or "").encode(),
        b"%d" % fence.epoch if fence else None,
        None if guards.edition is None else b"%d" % guards.edition,
        text_array(a.stream for a in grown),
        text_array(str(a.expected) for a in grown),
        text_array(str(len(a.events)) for a in grown),
    )
    write, blobs = _write_call(tenant.encode(), folded)
    return Write((Call(GUARD, guard), write), 1, folded.events, folded.rows, blobs)


def _write_call(tenant: bytes, folded: Folded) -> tuple[Call, dict[str, bytes]]:
    """All events and rows in one statement; the events share the time."""
    values: list[bytes | None] = [tenant, folded.events[0].at.isoformat().encode()]
    blobs: dict[str, bytes] = {}
    for one in folded.events:
        name, schema = name_of(one.event)
        data, large = encode_event(one.event)
        blobs |= large
        values += (
            one.id.encode(), one.stream.encode(), b"%d" % one.version, name.encode(),
            b"%d" % schema, data, encode(one.meta), b"%d" % len(data),
        )  # fmt: skip
    changes = row_changes(folded.rows, folded.before)
    for change in changes:
        values += change.values
    shapes = tuple((change.shape, len(change.values)) for change in changes)
    return Call(_write(len(folded.events), shapes), values), blobs


@cache
def _write(events: int, shapes: tuple[tuple[Shape, int], ...]) -> Statement:
    """So many events, each with eight parameters after the two that are shared, and rows."""
    rows = (
        ", ".join(f"${n}::{kind}" for n, kind in enumerate(_KINDS, start=3 + len(_KINDS) * row))
        for row in range(events)
    )
    parts, first = list[str](), 3 + len(_KINDS) * events
    for number, (shape, taken) in enumerate(shapes):
        parts.append(f"r{number} AS ({sql_of(shape, first)})")
        first += taken
    head = f"WITH {', '.join(parts)}" if parts else ""
    text = head + _EVENTS.format(values=", ".join(f"({row})" for row in rows))
    return Statement(
        b"undivided_write_" + sha256(text.encode()).hexdigest()[:16].encode(), text.encode()
    )


def _large(tenant: str, additions: Sequence[Addition], folded: Folded, guards: Guards) -> Write:
    batch = encoded(additions, folded.events, folded.rows, guards.fence)
    owner, calls = tenant.encode(), list[Call]()
    if guards.takes is not None:
        calls.append(Call(TAKE, (owner, guards.takes.encode())))
    told = len(calls)
    calls.append(Call(APPEND, (owner, batch.body)))
    if guards.edition is not None:
        calls.append(Call(EDITION, (b"%d" % guards.edition,)))
    return Write(tuple(calls), told, folded.events, folded.rows, batch.blobs)


class Encoded(Struct):
    """A batch as one JSON, and the blobs it refers to."""

    body: bytes
    blobs: dict[str, bytes]


def encoded(
    additions: Sequence[Addition],
    recorded: tuple[Recorded, ...],
    rows: Rows,
    fence: Fence | None,
) -> Encoded:
    """The batch as `log_write` takes it."""
    blobs: dict[str, bytes] = {}
    events = [_event_json(one, blobs) for one in recorded]
    kept: dict[str, list[Raw]] = {}
    gone: dict[str, list[str]] = {}
    for (table, row_id), row in rows.items():
        if row is None:
            gone.setdefault(table, []).append(escape_text(row_id))
        else:
            kept.setdefault(table, []).append(Raw(encode(row)))
    body: dict[str, Any] = {
        "at": recorded[0].at if recorded else None,
        "streams": [
            {"stream": a.stream, "expected": a.expected, "grown": len(a.events)}
            for a in additions
            if a.events
        ],
        "events": events,
        "rows": kept,
        "gone": gone,
    }
    if fence is not None:
        body["fence"] = {"agent": fence.agent_id, "epoch": fence.epoch}
    return Encoded(_to_json(body), blobs)


def step_call(tenant: str, folded: Folded, fence: Fence | None) -> Call | None:
    """The short way for one event that touches no row, in a stream that exists; else None."""
    if len(folded.events) != 1 or folded.rows or folded.events[0].version == 1:
        return None
    one = folded.events[0]
    data, blobs = encode_event(one.event)
    if blobs:
        return None
    name, schema = name_of(one.event)
    values = (
        tenant, one.stream, str(one.version - 1), one.at.isoformat(), one.id, name, str(schema),
        str(len(data)),
    )  # fmt: skip
    shared = [value.encode() for value in values] + [data, encode(one.meta)]
    if fence is None:
        return Call(STEP, shared)
    return Call(FENCED_STEP, [*shared, fence.agent_id.encode(), str(fence.epoch).encode()])


GUARD = Statement(b"undivided_guard", b"SELECT log_guard($1, $2, $3, $4, $5, $6, $7)")
TAKE = Statement(b"undivided_take", b"SELECT log_take($1, $2)")
EDITION = Statement(b"undivided_edition", b"SELECT log_edition($1)")
APPEND = Statement(
    b"undivided_append", b"SELECT o_txid, o_position, o_clock FROM log_write($1, $2::jsonb)"
)
SMALL = 8
"""Events up to which an append goes in small statements; more go quicker as one JSON."""


_KINDS = ("uuid", "text", "bigint", "text", "smallint", "jsonb", "jsonb", "int")
_EVENTS = """
INSERT INTO events
  (txid, id, tenant, stream, version, type, schema, data, meta, recorded_at, bytes)
SELECT (SELECT pg_current_xact_id()::text::bigint + b.txid_base FROM log_base b),
       v.id, $1, v.stream, v.version, v.type, v.schema, v.data, v.meta, $2::timestamptz, v.bytes
  FROM (VALUES {values}) v(id, stream, version, type, schema, data, meta, bytes)
RETURNING txid, position, clock_timestamp()"""
_GROW_ONE = """
grown AS (
  UPDATE streams SET version = version + 1
    WHERE tenant = $1 AND stream = $2 AND version = $3::bigint{fenced}
    RETURNING stream, version)
INSERT INTO events
  (txid, id, tenant, stream, version, type, schema, data, meta, recorded_at, bytes)
SELECT pg_current_xact_id()::text::bigint + b.txid_base, $5::uuid, $1, g.stream, g.version,
       $6, $7::smallint, $9::jsonb, $10::jsonb, $4::timestamptz, $8::int
  FROM grown g, log_base b
RETURNING txid, position, clock_timestamp()"""
_HELD = """
waited AS MATERIALIZED (
  SELECT pg_advisory_xact_lock_shared(hashtextextended('flight ' || $1 || '/' || $11, 0))),
held AS MATERIALIZED (
  SELECT 1 FROM waited, flights f
    WHERE f.tenant = $1 AND f.id = $11 AND f.epoch = $12::bigint AND f.held FOR SHARE OF f),"""

STEP = Statement(b"undivided_step", ("WITH" + _GROW_ONE.replace("{fenced}", "")).encode())
FENCED_STEP = Statement(
    b"undivided_fenced_step",
    ("WITH" + _HELD + _GROW_ONE.replace("{fenced}", " AND EXISTS (SELECT FROM held)")).encode(),
)
"""One event into one stream: what `log_write` does, as one statement and in half the time.

Nothing is written where the version or the epoch is another; `log_guard` then says why.
"""


def _event_json(one: Recorded, blobs: dict[str, bytes]) -> dict[str, Any]:
    name, schema = name_of(one.event)
    data, large = encode_event(one.event)
    blobs |= large
    return {
        "id": one.id,
        "stream": one.stream,
        "version": one.version,
        "type": name,
        "schema": schema,
        "data": Raw(data),
        "meta": Raw(encode(one.meta)),
        "bytes": len(data),
    }
