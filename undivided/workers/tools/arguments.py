"""Whether a model's arguments fit a tool's schema, and if not, a sentence it can learn from.

The subset of JSON schema that tool schemas are written in; other keywords are left to the tool
itself, which is the one that must not trust its arguments.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

Schema = dict[str, Any]

_IS: dict[str, Callable[[object], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "integer": lambda value: (
        (isinstance(value, int) and not isinstance(value, bool))
        or (isinstance(value, float) and value.is_integer())
    ),
}

_BOUNDS: dict[str, tuple[str, Callable[[Any, Any], bool]]] = {
    "minimum": ("at least", lambda value, bound: value >= bound),
    "maximum": ("at most", lambda value, bound: value <= bound),
    "exclusiveMinimum": ("more than", lambda value, bound: value > bound),
    "exclusiveMaximum": ("less than", lambda value, bound: value < bound),
}

_LENGTHS: dict[str, tuple[str, Callable[[int, int], bool]]] = {
    "minLength": ("at least {} characters long", lambda length, bound: length >= bound),
    "maxLength": ("at most {} characters long", lambda length, bound: length <= bound),
    "minItems": ("at least {} items long", lambda length, bound: length >= bound),
    "maxItems": ("at most {} items long", lambda length, bound: length <= bound),
}


def first_mistake(args: dict[str, Any], schema: Schema) -> str | None:
    """What is wrong with `args` and what is allowed; None if nothing is."""
    return next(_mistakes(args, schema, ""), None)


def _mistakes(value: object, schema: Schema, place: str) -> Iterator[str]:
    name = f"argument {place!r}" if place else "the arguments"
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(_IS[kind](value) for kind in kinds if kind in _IS):
        yield f"{name} must be of type {' or '.join(kinds)}; got {_shown(value)}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{name} must be one of {_shown(schema['enum'])}; got {_shown(value)}"
    match value:
        case dict():
            yield from _in_object(value, schema, place, name)
        case list():
            yield from _too_long_or_short(len(value), schema, name, "Items")
            for index, item in enumerate(value):
                yield from _mistakes(item, schema.get("items", {}), f"{place}[{index}]")
        case str():
            yield from _too_long_or_short(len(value), schema, name, "Length")
        case int() | float() if not isinstance(value, bool):
            yield from _out_of_bounds(value, schema, name)


def _in_object(value: dict[str, Any], schema: Schema, place: str, name: str) -> Iterator[str]:
    properties: dict[str, Schema] = schema.get("properties", {})
    allowed = ", ".join(properties) or "none"
    for key in schema.get("required", ()):
        if key not in value:
            yield f"{name} must have {key!r}; allowed are {allowed}"
    for key, inner in value.items():
        if key in properties:
            yield from _mistakes(inner, properties[key], f"{place}.{key}" if place else key)
        elif schema.get("additionalProperties") is False:
            yield f"{name} must not have {key!r}; allowed are {allowed}"


def _out_of_bounds(value: float, schema: Schema, name: str) -> Iterator[str]:
    for keyword, (words, holds) in _BOUNDS.items():
        if keyword in schema and not holds(value, schema[keyword]):
            yield f"{name} must be {words} {schema[keyword]}; got {_shown(value)}"


def _too_long_or_short(length: int, schema: Schema, name: str, unit: str) -> Iterator[str]:
    for keyword, (words, holds) in _LENGTHS.items():
        if keyword.endswith(unit) and keyword in schema and not holds(length, schema[keyword]):
            yield f"{name} must be {words.format(schema[keyword])}; it has {length}"


def _shown(value: object) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 80 else text[:79] + "…"
