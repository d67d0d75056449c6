"""What events recorded, as the API shows it: in camelCase, as all else.

Only the names that are ours are turned; what a producer or a tool put in stays as it was given.
"""

from __future__ import annotations

from datetime import datetime
from functools import cache
from typing import Any

from msgspec import Struct
from msgspec.structs import FieldInfo, fields

from undivided.api.answers import instant
from undivided.store.tail import Logged


def recorded_data(one: Logged) -> Any:
    """The data of an event in today's shape; as it is stored if only a newer release knows it."""
    event = one.event()
    return one.plain_data() if event is None else in_camel(event)


def in_camel(value: Any) -> Any:
    """A domain value as plain ones."""
    if isinstance(value, Struct):
        return _struct(value)
    if isinstance(value, dict):
        return {key: in_camel(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [in_camel(one) for one in value]
    return instant(value) if isinstance(value, datetime) else value


def _struct(value: Struct) -> dict[str, Any]:
    config = value.__struct_config__
    told: dict[str, Any] = {}
    if config.tag_field is not None:
        told[config.tag_field] = config.tag
    for name, field in _names(type(value)):
        one = getattr(value, field.name)
        if not (config.omit_defaults and _is_default(field, one)):
            told[name] = in_camel(one)
    return told


def _is_default(field: FieldInfo, value: Any) -> bool:
    if callable(field.default_factory):
        return bool(value == field.default_factory())
    return not field.required and bool(value == field.default)


@cache
def _names(kind: type[Struct]) -> tuple[tuple[str, FieldInfo], ...]:
    return tuple((camel(field.name), field) for field in fields(kind))


def camel(name: str) -> str:
    """`turn_id` as `turnId`."""
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)
