"""What differs between two states, path by path. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

from msgspec import Struct

_NOTHING = object()
_CLOCK = frozenset({"position", "time"})
"""What differs between any two moments, and says nothing."""


class Change(Struct, frozen=True):
    """One place that differs; a side that has nothing there says null."""

    path: str
    before: Any
    after: Any


def changes(before: dict[str, Any], after: dict[str, Any]) -> list[Change]:
    """Every place that differs, in the order in which a state tells them."""
    return list(_differ(_timeless(before), _timeless(after), ""))


def _timeless(state: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in state.items() if name not in _CLOCK}


def _differ(before: Any, after: Any, path: str) -> Iterator[Change]:
    if before is after:
        return
    match before, after:
        case dict(), dict():
            for name in dict.fromkeys((*before, *after)):
                there, now = before.get(name, _NOTHING), after.get(name, _NOTHING)
                yield from _differ(there, now, f"{path}.{name}" if path else name)
        case list(), list() if _named(before) and _named(after):
            yield from _differ(_by_name(before), _by_name(after), path)
        case list(), list():
            for number, (there, now) in enumerate(zip_longest(before, after, fillvalue=_NOTHING)):
                yield from _differ(there, now, f"{path}[{number}]")
        case _ if before != after:
            yield Change(path, _shown(before), _shown(after))


def _named(values: list[Any]) -> bool:
    return all(isinstance(one, dict) and "id" in one for one in values)


def _by_name(values: list[Any]) -> dict[str, Any]:
    return {one["id"]: one for one in values}


def _shown(value: Any) -> Any:
    return None if value is _NOTHING else value
