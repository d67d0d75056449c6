"""Invariants over the whole history, and every row against the log, while writers go on.

Two connections. One holds a single read-only snapshot: the log and the rows are read in it, so
that exactly the events are folded whose rows are compared, and nobody has to stop. It has no
transaction id, and so holds back no reader of the log. The other holds the shadow in temporary
tables, in transactions of its own: had it shared the first one's transaction, that would have
had an id, and the tail of the log would have stood still for as long as the check takes.

The comparison goes by hashes in the order of ids on both sides; only rows whose hashes differ
are fetched and compared field by field, for two texts of one number (`1` and `1.0`) differ and
are no difference.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import psycopg
from msgspec import Struct
from psycopg import sql
from sqlalchemy import Table

from undivided.domain.coordinates import ORIGIN, Coordinate
from undivided.domain.errors import Unavailable
from undivided.domain.invariants import Finding, HistoryCheck
from undivided.domain.invariants.rows import (
    INVARIANT,
    RowPlace,
    row_difference,
    stream_version_difference,
)
from undivided.projections.homes import home_of
from undivided.store.codec import unescape_text
from undivided.store.database import Connection
from undivided.store.log_pages import pieces
from undivided.store.shadow import TEMPORARY, Shadow, decoded_row
from undivided.store.tables import PROJECTED

Progress = Callable[[int, int], None]
"""Told from time to time how many events of how many are done."""

KEPT = 1_000
"""Findings that are reported one by one; the others are counted."""
_HASHES = 2_000

_HASHED = """
SELECT tenant, id, md5(to_jsonb(t)::text) FROM {} t
 ORDER BY tenant COLLATE "C", id COLLATE "C\""""
_ROWS = "SELECT id, to_jsonb(t)::text FROM {} t WHERE tenant = %s AND id = ANY(%s)"
_STREAMS = """
SELECT tenant, stream, coalesce(e.version, 0), s.version
  FROM streams s
  FULL JOIN (SELECT tenant, stream, max(version) AS version FROM events GROUP BY 1, 2) e
       USING (tenant, stream)
 WHERE coalesce(e.version, 0) IS DISTINCT FROM s.version
 ORDER BY 1, 2"""
_EVENTS = "SELECT coalesce(sum(version), 0)::bigint FROM streams"


class Wrong(Struct, frozen=True):
    """A finding, and the tenant it is about."""

    tenant: str
    finding: Finding


class Checked(Struct, kw_only=True):
    """What a check saw and found; `found` counts also what is not in `wrong` any more."""

    horizon: Coordinate = ORIGIN
    events: int = 0
    rows: int = 0
    found: int = 0
    wrong: list[Wrong] = []

    def add(self, tenant: str, findings: list[Finding]) -> None:
        """Take over what was found, as far as there is room."""
        self.found += len(findings)
        room = max(0, KEPT - len(self.wrong))
        self.wrong.extend(Wrong(tenant, finding) for finding in findings[:room])


async def check(url: str, on_progress: Progress = lambda _done, _all: None) -> Checked:
    """Prove the invariants over everything recorded so far, and compare every row.

    `url`: the database itself, past any pooler.

    Raises:
        Unavailable: Postgres cannot be reached.
        Corrupt: an event cannot be read at all.
    """
    try:
        async with _connected(url) as log, _connected(url) as scratch:
            await log.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            shadow = Shadow(scratch, TEMPORARY)
            await shadow.create_temporary()
            checked = await _history(log, shadow, on_progress)
            for table in PROJECTED:
                await _compare(log, scratch, table, checked)
            await _versions(log, checked)
            return checked
    except psycopg.OperationalError as error:
        raise Unavailable(f"the check lost the database: {error}") from error


@asynccontextmanager
async def _connected(url: str) -> AsyncIterator[Connection]:
    connection = await psycopg.AsyncConnection.connect(
        url, autocommit=True, application_name="undivided check", connect_timeout=5
    )
    async with connection:
        await connection.execute("SET TIME ZONE 'UTC'")
        yield connection


async def _history(log: Connection, shadow: Shadow, on_progress: Progress) -> Checked:
    """Feed every event to the invariants and to the shadow."""
    checked = Checked()
    checks: dict[str, HistoryCheck] = {}
    cursor = await log.execute(_EVENTS)
    (total,) = await cursor.fetchone() or (0,)
    async for piece in pieces(log):
        for kept in piece:
            history = checks.setdefault(kept.tenant, HistoryCheck())
            checked.add(kept.tenant, history.feed(kept.placed))
        await shadow.take(piece)
        checked.events += len(piece)
        checked.horizon = piece[-1].placed.coordinate
        on_progress(checked.events, max(total, checked.events))
    for tenant, history in checks.items():
        checked.add(tenant, history.finish())
    return checked


async def _compare(log: Connection, scratch: Connection, table: Table, checked: Checked) -> None:
    """Every row of one table with its shadow."""
    live = sql.Identifier("public", table.name)
    folded = sql.Identifier(TEMPORARY, table.name)
    suspects: dict[str, list[str]] = {}
    async with scratch.transaction():
        async for tenant, row_id, same in _merged(log, scratch, live, folded):
            checked.rows += 1
            if not same:
                suspects.setdefault(tenant, []).append(row_id)
    for tenant, ids in suspects.items():
        for start in range(0, len(ids), _HASHES):
            some = ids[start : start + _HASHES]
            stored = await _texts(log, live, tenant, some)
            told = await _texts(scratch, folded, tenant, some)
            findings = [
                _difference(table, row_id, told.get(row_id), stored.get(row_id), checked.horizon)
                for row_id in some
            ]
            checked.add(tenant, [finding for finding in findings if finding is not None])


async def _merged(
    log: Connection, scratch: Connection, live: sql.Identifier, folded: sql.Identifier
) -> AsyncIterator[tuple[str, str, bool]]:
    """Every id that is on either side, and whether both sides have the same row of it."""
    left, right = _hashes(log, live), _hashes(scratch, folded)
    one, other = await anext(left, None), await anext(right, None)
    while one is not None or other is not None:
        if one is not None and (other is None or one[:2] < other[:2]):
            yield one[0], one[1], False
            one = await anext(left, None)
        elif other is not None and (one is None or other[:2] < one[:2]):
            yield other[0], other[1], False
            other = await anext(right, None)
        elif one is not None and other is not None:
            yield one[0], one[1], one[2] == other[2]
            one, other = await anext(left, None), await anext(right, None)


async def _hashes(
    connection: Connection, table: sql.Identifier
) -> AsyncIterator[tuple[str, str, str]]:
    async with connection.cursor(name="undivided_check") as cursor:
        cursor.itersize = _HASHES
        await cursor.execute(sql.SQL(_HASHED).format(table))
        async for tenant, row_id, digest in cursor:
            yield tenant, row_id, digest


async def _texts(
    connection: Connection, table: sql.Identifier, tenant: str, ids: list[str]
) -> dict[str, str]:
    cursor = await connection.execute(sql.SQL(_ROWS).format(table), (tenant, ids))
    return dict(await cursor.fetchall())


def _difference(
    table: Table, row_id: str, told: str | None, stored: str | None, horizon: Coordinate
) -> Finding | None:
    """What is wrong with one row, given as its JSON on both sides."""
    folded = decoded_row(table.name, told) if told is not None else None
    try:
        there = decoded_row(table.name, stored) if stored is not None else None
    except msgspec.ValidationError as error:
        return _unreadable(table, row_id, folded, str(error), horizon)
    known: Any = folded if folded is not None else there
    place = RowPlace(table.name, unescape_text(row_id), home_of(known))
    found = row_difference(place, folded, there, horizon)
    if found is None and told is not None and stored is not None:
        return _derived_difference(table, told, stored, place, horizon)
    return found


def _unreadable(
    table: Table, row_id: str, folded: Any | None, problem: str, horizon: Coordinate
) -> Finding:
    stream = home_of(folded) if folded is not None else ""
    return Finding(
        invariant=INVARIANT, rule="row_unreadable", subject=f"{table.name}/{row_id}",
        where=str(horizon), stream=stream, version=0, text=f"the row cannot be read: {problem}",
    )  # fmt: skip


def _derived_difference(
    table: Table, told: str, stored: str, place: RowPlace, horizon: Coordinate
) -> Finding | None:
    """Columns that are written beside the row, for its indexes, and are no field of it."""
    folded, there = msgspec.json.decode(told), msgspec.json.decode(stored)
    wrong = [
        f"{column.name} is {there[column.name]!r}, the log says {folded[column.name]!r}"
        for column in table.columns
        if "folded_as" in column.info and folded[column.name] != there[column.name]
    ]
    if not wrong:
        return None
    return Finding(
        invariant=INVARIANT, rule="row_differs", subject=f"{place.table}/{place.row_id}",
        where=str(horizon), stream=place.stream, version=0, text="; ".join(wrong),
    )  # fmt: skip


async def _versions(log: Connection, checked: Checked) -> None:
    """Every stream's version row against its last event."""
    async with log.cursor(name="undivided_streams") as cursor:
        await cursor.execute(_STREAMS)
        async for tenant, stream, counted, stored in cursor:
            finding = stream_version_difference(stream, counted, stored, checked.horizon)
            checked.add(tenant, [finding])
