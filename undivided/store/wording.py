"""Field names as they are stored, and in the camelCase of all JSON that leaves the house.

Only names that are ours are turned, by the types of the catalogue: what a producer, a model or a
tool has put in keeps the names that it was given.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from msgspec import Struct

from undivided.domain.events.catalogue import CATALOGUE

_KINDS = {name: kind for kind, (name, _) in CATALOGUE.items()}
Turn = Callable[[str], str]


def in_camel_case(event_type: str, data: dict[str, Any]) -> dict[str, Any]:
    """An event's stored data as it is told; as it is if nobody here knows the type."""
    return _turned(_KINDS[event_type], data, camel) if event_type in _KINDS else data


def as_stored(event_type: str, data: dict[str, Any]) -> dict[str, Any]:
    """An event's data as it is stored; names that are stored ones already stay."""
    return _turned(_KINDS[event_type], data, snake) if event_type in _KINDS else data


def camel(name: str) -> str:
    """`turn_id` as `turnId`."""
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def snake(name: str) -> str:
    """`turnId` as `turn_id`."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def _turned(kind: Any, value: Any, turn: Turn) -> Any:
    """`value`, which is of `kind` but plain, with the names of its fields turned."""
    if isinstance(value, dict):
        return _object(kind, value, turn)
    if isinstance(value, (list, tuple)):
        (inner, *_) = get_args(_only(kind, tuple)) or (Any,)
        return [_turned(inner, one, turn) for one in value]
    return value


def _object(kind: Any, value: dict[str, Any], turn: Turn) -> dict[str, Any]:
    struct = _struct_of(kind, value)
    if struct is None:
        inner = (*get_args(_only(kind, dict)), Any, Any)[1]
        return {key: _turned(inner, one, turn) for key, one in value.items()}
    known = _fields(struct)
    if struct.__struct_encode_fields__ != struct.__struct_fields__:
        return value  # it is stored as it is told
    turned: dict[str, Any] = {}
    for key, one in value.items():
        stored = snake(key)
        name, inner = (turn(stored), known[stored]) if stored in known else (key, Any)
        turned[name] = _turned(inner, one, turn)
    return turned


def _struct_of(kind: Any, value: dict[str, Any]) -> type[Struct] | None:
    """The struct that a plain object is of, told apart by its tag."""
    kinds = [one for one in _members(kind) if isinstance(one, type) and issubclass(one, Struct)]
    for one in kinds:
        config = one.__struct_config__
        if config.tag_field is not None and value.get(config.tag_field) == config.tag:
            return one
    return kinds[0] if len(kinds) == 1 else None


def _only(kind: Any, origin: type) -> Any:
    return next((one for one in _members(kind) if get_origin(one) is origin), None)


def _members(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


@cache
def _fields(kind: type[Struct]) -> dict[str, Any]:
    return get_type_hints(kind)
