"""Rows as plain prepared statements, made from `tables.py`.

There is one statement to keep a row, one to change some of its columns, one to remove it. Values
travel as text, each column by its own type.

Small statements by key are what Postgres is quickest at: the rows of one stimulus take a third
of the time that they take as JSON in a function.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

from msgspec.structs import astuple
from sqlalchemy import BigInteger, Boolean, Double, Integer, SmallInteger, Table, Text
from sqlalchemy.dialects.postgresql import JSONB, TIMESTAMP
from sqlalchemy.dialects.postgresql.base import PGDialect

from undivided.projections.table import BY_TABLE
from undivided.store.codec import encode, escape_text
from undivided.store.exchange import Call, Statement
from undivided.store.tables import PROJECTED, folded_columns

Place = tuple[str, str]
_TABLES: Mapping[str, Table] = MappingProxyType({table.name: table for table in PROJECTED})
_ORDER = {table.name: number for number, table in enumerate(PROJECTED)}
_DIALECT = PGDialect()  # type: ignore[no-untyped-call]
_FIELD = re.compile(r'r\."?(\w+)"?')

_KEEP = (
    "INSERT INTO {table} AS t (tenant, {columns}) VALUES ($1, {values})"
    " ON CONFLICT (tenant, id) DO UPDATE SET {updates}"
)
_CHANGE = "UPDATE {table} SET {updates} WHERE tenant = $1 AND id = $2"
_REMOVE = "DELETE FROM {table} WHERE tenant = $1 AND id = $2"


def row_calls(tenant: str, rows: Mapping[Place, Any], before: Mapping[Place, Any]) -> list[Call]:
    """What makes the tables agree with `rows`; `before` are rows as they stand, if known.

    Tables come in one fixed order, so that two appends never wait for each other crosswise.
    """
    ordered = sorted(rows, key=lambda place: _ORDER[place[0]])
    owner = tenant.encode()
    calls = (_call(owner, place, rows[place], before.get(place)) for place in ordered)
    return [call for call in calls if call is not None]


def _call(tenant: bytes, place: Place, row: Any, before: Any) -> Call | None:
    table, row_id = place
    if row is None:
        return Call(_remove(table), (tenant, escape_text(row_id).encode()))
    values, texts = astuple(row), _texts(table)
    if before is None:
        return Call(_keep(table), (tenant, *(t(v) for t, v in zip(texts, values, strict=True))))
    changed = tuple(
        n for n, (new, old) in enumerate(zip(values, astuple(before), strict=True))
        if new is not old and new != old
    )  # fmt: skip
    if not changed:
        return None
    new_values = (texts[n](values[n]) for n in changed)
    return Call(_change(table, changed), (tenant, escape_text(row_id).encode(), *new_values))


@cache
def _texts(table: str) -> tuple[Callable[[Any], bytes | None], ...]:
    """How each field of the row becomes the text of its column."""
    columns = _TABLES[table].columns
    return tuple(_text_of(columns[name].type) for name in _fields(table))


@cache
def _fields(table: str) -> tuple[str, ...]:
    return tuple(BY_TABLE[table].row.__struct_fields__)


def _text_of(kind: Any) -> Callable[[Any], bytes | None]:
    if isinstance(kind, JSONB):
        return lambda value: None if value is None else encode(value)
    if isinstance(kind, TIMESTAMP):
        return lambda value: None if value is None else value.isoformat().encode()
    if isinstance(kind, Boolean):
        return lambda value: None if value is None else (b"t" if value else b"f")
    if isinstance(kind, (Integer, BigInteger, SmallInteger, Double)):
        return lambda value: None if value is None else repr(value).encode()
    if isinstance(kind, Text):
        return lambda value: None if value is None else escape_text(value).encode()
    raise TypeError(f"no text for columns of type {kind!r}")


@cache
def _keep(table: str) -> Statement:
    fields = _fields(table)
    folded = _folded(table, {name: f"${n}" for n, name in enumerate(fields, start=2)})
    columns = ", ".join(f'"{name}"' for name in folded)
    updates = ", ".join(f'"{name}" = excluded."{name}"' for name in folded if name != "id")
    text = _KEEP.format(
        table=table, columns=columns, values=", ".join(folded.values()), updates=updates
    )
    return Statement(f"undivided_keep_{table}".encode(), text.encode())


@cache
def _change(table: str, changed: tuple[int, ...]) -> Statement:
    """Names are cut at 63 bytes, so that the fields are in them by their numbers."""
    fields = [_fields(table)[n] for n in changed]
    folded = _folded(table, {name: f"${n}" for n, name in enumerate(fields, start=3)})
    updates = ", ".join(f'"{name}" = {value}' for name, value in folded.items())
    mask = sum(1 << n for n in changed)
    text = _CHANGE.format(table=table, updates=updates)
    return Statement(f"undivided_change_{table}_{mask:x}".encode(), text.encode())


@cache
def _remove(table: str) -> Statement:
    text = _REMOVE.format(table=table)
    return Statement(f"undivided_remove_{table}".encode(), text.encode())


def _folded(table: str, parameters: Mapping[str, str]) -> dict[str, str]:
    """Each column that these fields decide, with its SQL.

    Some are taken out of others; of what does not change, out of the row as it stands.
    """
    columns = _TABLES[table].columns

    def value(name: str) -> str:
        if name not in parameters:
            return f'{table}."{name}"'
        return f"{parameters[name]}::{columns[name].type.compile(_DIALECT)}"

    return {
        name: _FIELD.sub(lambda field: value(field[1]), expression)
        for name, expression in folded_columns(_TABLES[table]).items()
        if not parameters.keys().isdisjoint(_FIELD.findall(expression))
    }
