"""Shadow tables: the rows as the log says they are, folded beside those that are there.

A shadow is folded piece by piece. For each piece the rows that it touches are read back from
the shadow, folded, and written in one statement a table, so that memory holds one piece and
its rows, however long the log is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec import Raw
from psycopg import sql
from sqlalchemy import Table

from undivided.domain.recorded import Recorded
from undivided.projections.table import BY_TABLE, Rows, touched
from undivided.store.codec import encode, escape_text, row_decoder
from undivided.store.database import Connection
from undivided.store.log_pages import Kept
from undivided.store.tables import PROJECTED, folded_columns

TEMPORARY = "pg_temp"
NEW_EDITION = "UPDATE log_base SET edition = edition + 1"
"""What goes with rows that were made anew: nobody goes by what they remember of the old ones."""

_to_json = msgspec.json.Encoder().encode
_ROW_OF = {table: row_decoder(p.row) for table, p in BY_TABLE.items()}


class Shadow:
    """Tables in a schema of their own, named like the live ones."""

    def __init__(
        self, connection: Connection, schema: str, tables: Sequence[Table] = PROJECTED
    ) -> None:
        self._connection, self._schema = connection, schema
        self._tables = {table.name: table for table in tables}

    async def create_temporary(self) -> None:
        """Make the tables for this session only, with no constraint that history could break."""
        for name in self._tables:
            await self._connection.execute(
                sql.SQL(
                    "CREATE TEMPORARY TABLE {} (LIKE public.{} INCLUDING GENERATED,"
                    " PRIMARY KEY (tenant, id))"
                ).format(sql.Identifier(name), sql.Identifier(name))
            )

    async def take(self, piece: Iterable[Kept]) -> None:
        """Fold the next piece of the log."""
        by_tenant: dict[str, list[Recorded]] = {}
        for kept in piece:
            by_tenant.setdefault(kept.tenant, []).append(kept.placed.recorded)
        for tenant, history in by_tenant.items():
            await self._fold(tenant, history)

    async def _fold(self, tenant: str, history: list[Recorded]) -> None:
        rows: Rows = {}
        for table, ids in self._needed(history).items():
            rows |= await self._load(tenant, table, ids)
        changed: Rows = {}
        for recorded in history:
            for projection, key in touched(recorded):
                if projection.table in self._tables:
                    place = (projection.table, key)
                    row = projection.reduce(key, rows.get(place), recorded)
                    rows[place] = changed[place] = row
        await self._write(tenant, changed)

    def _needed(self, history: list[Recorded]) -> dict[str, set[str]]:
        """The rows that this piece goes on from, by table."""
        needed: dict[str, set[str]] = {}
        born: set[tuple[str, str]] = set()
        for recorded in history:
            kind = type(recorded.event).__name__
            for projection, key in touched(recorded):
                if projection.table not in self._tables:
                    continue
                if kind in projection.births:
                    born.add((projection.table, key))
                elif (projection.table, key) not in born:
                    needed.setdefault(projection.table, set()).add(key)
        return needed

    async def _load(self, tenant: str, table: str, ids: set[str]) -> Rows:
        cursor = await self._connection.execute(
            sql.SQL("SELECT to_jsonb(t)::text FROM {} t WHERE tenant = %s AND id = ANY(%s)").format(
                self._name(table)
            ),
            (tenant, [escape_text(row_id) for row_id in ids]),
        )
        rows = (_ROW_OF[table](text) for (text,) in await cursor.fetchall())
        return {(table, row.id): row for row in rows}

    async def _write(self, tenant: str, rows: Rows) -> None:
        kept: dict[str, list[Raw]] = {}
        gone: dict[str, list[str]] = {}
        for (table, row_id), row in rows.items():
            if row is None:
                gone.setdefault(table, []).append(escape_text(row_id))
            else:
                kept.setdefault(table, []).append(Raw(encode(row)))
        for table, encoded in kept.items():
            statement = upsert(self._tables[table], self._name(table))
            await self._connection.execute(statement, (tenant, _to_json(encoded).decode()))
        for table, ids in gone.items():
            await self._connection.execute(
                sql.SQL("DELETE FROM {} WHERE tenant = %s AND id = ANY(%s)").format(
                    self._name(table)
                ),
                (tenant, ids),
            )

    def _name(self, table: str) -> sql.Identifier:
        return sql.Identifier(self._schema, table)


def upsert(table: Table, name: sql.Identifier) -> sql.Composed:
    """The statement that writes whole rows, given as one JSON array, over those that are there."""
    folded = folded_columns(table)
    columns = [sql.Identifier(column) for column in folded]
    values = [sql.SQL(taken) for taken in folded.values()]
    updates = [
        sql.SQL("{0} = excluded.{0}").format(column)
        for column, plain in zip(columns, folded, strict=True)
        if plain != "id"
    ]
    return sql.SQL(
        "INSERT INTO {name} AS t (tenant, {columns}) SELECT %s, {values}"
        " FROM jsonb_populate_recordset(NULL::{name}, %s::jsonb) r"
        " ON CONFLICT (tenant, id) DO UPDATE SET {updates}"
    ).format(
        name=name,
        columns=sql.SQL(", ").join(columns),
        values=sql.SQL(", ").join(values),
        updates=sql.SQL(", ").join(updates),
    )


def decoded_row(table: str, text: str) -> Any:
    """A row of a projected table from its stored JSON."""
    return _ROW_OF[table](text)
