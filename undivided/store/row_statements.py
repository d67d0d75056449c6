"""Changes of rows as SQL, made from `tables.py`: one kept, some columns of one, one removed.

Each change is a shape, which is SQL, and its values; changes of the same shapes are the same
statement, prepared once (`batch.py`). Values travel as text, each column by its own type.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import astuple
from sqlalchemy import BigInteger, Boolean, Double, Integer, SmallInteger, Table, Text
from sqlalchemy.dialects.postgresql import JSONB, TIMESTAMP
from sqlalchemy.dialects.postgresql.base import PGDialect

from undivided.projections.table import BY_TABLE
from undivided.store.codec import encode, escape_text
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
_CHANGE = "UPDATE {table} SET {updates} WHERE tenant = $1 AND id = ${id}"
_REMOVE = "DELETE FROM {table} WHERE tenant = $1 AND id = ${id}"


_MOVING: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"agents": ("attention", "waiting", "next_seq", "changed_at")}
)
"""What work changes in a row of which people change the rest: any combination of theirs is written
with all of it, so that not every one becomes a statement on every connection."""


class Shape(Struct, frozen=True):
    """What happens to a row: it is kept whole, removed, or changed in these of its fields."""

    table: str
    kind: Literal["keep", "change", "remove"]
    fields: tuple[int, ...] = ()


class Change(Struct, frozen=True):
    """One row's change; `values` are the parameters of its SQL, in order."""

    shape: Shape
    values: tuple[bytes | None, ...]


def row_changes(rows: Mapping[Place, Any], before: Mapping[Place, Any]) -> list[Change]:
    """What makes the tables agree with `rows`; `before` are rows as they stand, if known.

    Tables come in one fixed order, so that two appends never wait for each other crosswise.
    """
    ordered = sorted(rows, key=lambda place: _ORDER[place[0]])
    changes = (_change_of(place, rows[place], before.get(place)) for place in ordered)
    return [change for change in changes if change is not None]


def _change_of(place: Place, row: Any, before: Any) -> Change | None:
    table, row_id = place
    if row is None:
        return Change(Shape(table, "remove"), (escape_text(row_id).encode(),))
    values, texts = astuple(row), _texts(table)
    if before is None:
        return Change(Shape(table, "keep"), tuple(t(v) for t, v in zip(texts, values, strict=True)))
    changed = tuple(
        n for n, (new, old) in enumerate(zip(values, astuple(before), strict=True))
        if new is not old and new != old
    )  # fmt: skip
    if not changed:
        return None
    if table in _MOVING and not _moving(table).issuperset(changed):
        changed = tuple(range(1, len(values)))
    new_values = (texts[n](values[n]) for n in changed)
    return Change(Shape(table, "change", changed), (escape_text(row_id).encode(), *new_values))


def sql_of(shape: Shape, first: int) -> str:
    """The SQL of a change; $1 is the tenant, and its values begin at the parameter `first`."""
    match shape.kind:
        case "keep":
            return _keep(shape.table, first)
        case "change":
            return _change(shape.table, shape.fields, first)
        case "remove":
            return _REMOVE.format(table=shape.table, id=first)


@cache
def _texts(table: str) -> tuple[Callable[[Any], bytes | None], ...]:
    """How each field of the row becomes the text of its column."""
    columns = _TABLES[table].columns
    return tuple(_text_of(columns[name].type) for name in _fields(table))


@cache
def _moving(table: str) -> frozenset[int]:
    return frozenset(_fields(table).index(name) for name in _MOVING[table])


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


def _keep(table: str, first: int) -> str:
    fields = _fields(table)
    folded = _folded(table, {name: f"${n}" for n, name in enumerate(fields, start=first)})
    columns = ", ".join(f'"{name}"' for name in folded)
    updates = ", ".join(f'"{name}" = excluded."{name}"' for name in folded if name != "id")
    return _KEEP.format(
        table=table, columns=columns, values=", ".join(folded.values()), updates=updates
    )


def _change(table: str, changed: tuple[int, ...], first: int) -> str:
    fields = [_fields(table)[n] for n in changed]
    folded = _folded(table, {name: f"${n}" for n, name in enumerate(fields, start=first + 1)})
    updates = ", ".join(f'"{name}" = {value}' for name, value in folded.items())
    return _CHANGE.format(table=table, updates=updates, id=first)


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
