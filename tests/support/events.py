"""Hypothesis strategies for every event, built from the types of its fields."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec.inspect as mi
from hypothesis import strategies as st

from undivided.domain.coordinates import Coordinate
from undivided.domain.events.catalogue import CATALOGUE, Event
from undivided.domain.placed import Placed
from undivided.domain.recorded import Meta, Recorded

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)

NAMES = st.sampled_from(["a", "b", "c"])
"""Few ids, so that events of one history meet each other."""

MOMENTS = st.integers(0, 10**6).map(lambda seconds: BEGAN + timedelta(seconds=seconds))

ANY_TEXT = st.text(max_size=20) | st.text("\x00\x1a\ud800\udfff\\u01ab", max_size=20)
"""All of Unicode, with what Postgres refuses."""

ANY_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=5,
)


def events(*kinds: type[Event]) -> st.SearchStrategy[Event]:
    """Any event, or any of `kinds`."""
    return st.sampled_from(kinds or tuple(CATALOGUE)).flatmap(_struct)


def recorded() -> st.SearchStrategy[Recorded]:
    """Any event in an envelope; versions and times are as they come."""
    return st.builds(
        Recorded,
        id=NAMES,
        stream=NAMES.map("agent:{}".format),
        version=st.integers(1, 100),
        event=events(),
        meta=st.builds(Meta, correlation=st.none() | NAMES),
        at=st.integers(0, 10**6).map(lambda s: BEGAN + timedelta(seconds=s)),
    )


def placed(history: list[Recorded]) -> list[Placed]:
    """Each event in a transaction of its own."""
    return [Placed(Coordinate(n, n), one) for n, one in enumerate(history, start=1)]


def _struct(kind: type[Any]) -> st.SearchStrategy[Any]:
    info = mi.type_info(kind)
    assert isinstance(info, mi.StructType)
    return st.builds(kind, **{field.name: _field(field) for field in info.fields})


def _field(field: mi.Field) -> st.SearchStrategy[Any]:
    if field.name.endswith("_id") and isinstance(field.type, mi.StrType):
        return NAMES
    if field.name == "item_ids":
        return st.lists(NAMES, max_size=3).map(tuple)
    return _type(field.type)


def _type(kind: mi.Type) -> st.SearchStrategy[Any]:
    match kind:
        case mi.StrType():
            return ANY_TEXT
        case mi.BoolType():
            return st.booleans()
        case mi.IntType():
            return st.integers(0, 1000)
        case mi.FloatType():
            return st.floats(0, 1e6)
        case mi.DateTimeType():
            return MOMENTS
        case mi.AnyType() | mi.NoneType():
            return ANY_JSON if isinstance(kind, mi.AnyType) else st.none()
        case mi.LiteralType(values=values):
            return st.sampled_from(values)
        case mi.UnionType(types=types):
            return st.one_of(*(_type(one) for one in types))
        case mi.VarTupleType(item_type=item):
            return st.lists(_type(item), max_size=3).map(tuple)
        case mi.DictType(key_type=key, value_type=value):
            return st.dictionaries(_type(key), _type(value), max_size=3)
        case mi.StructType(cls=cls):
            return _struct(cls)
        case _:
            raise NotImplementedError(f"no strategy for {kind}: add one here")
