"""From a decoded script file to its rules, with every mistake named exactly.

The file itself is read elsewhere; here come its plain values and, for each path into them,
the line where it stands. A mistake says file, line, place, what is there and what is allowed.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, get_args

from msgspec import Struct

from undivided.domain.dialogue import Usage
from undivided.domain.errors import FailureKind, Invalid
from undivided.domain.scenarios import SCENARIOS
from undivided.domain.script import Rule, Script, ScriptedCall

Path = tuple[str | int, ...]
Lines = Mapping[Path, int]
"""For each path into a document, the 1-based line where its value stands."""


class ScriptMistake(Invalid):
    """A script file says something that a script cannot mean."""

    code = "script_mistake"


class _Place(Struct, frozen=True):
    """One value's place in its file; knows how to complain about it."""

    name: str
    lines: Lines
    path: Path = ()

    def at(self, step: str | int) -> _Place:
        return _Place(self.name, self.lines, (*self.path, step))

    def line(self) -> int | None:
        for length in range(len(self.path), -1, -1):
            if (line := self.lines.get(self.path[:length])) is not None:
                return line
        return None

    def __str__(self) -> str:
        text = ""
        for step in self.path:
            text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
        return text or "the document"

    def mistake(self, text: str) -> ScriptMistake:
        line = self.line()
        where = f"{self.name}, line {line}" if line else self.name
        return ScriptMistake(f"{where}: {self} {text}", str(self))

    def wanted(self, allowed: str, value: object) -> ScriptMistake:
        return self.mistake(f"must be {allowed}; got {_shown(value)}")


def parse_script(document: object, name: str, lines: Lines) -> Script:
    """The script that a decoded YAML or JSON document describes.

    Raises:
        ScriptMistake: the first thing in it that a script cannot say.
    """
    place = _Place(name, lines)
    top = _mapping(document, place, ("rules",))
    if "rules" not in top:
        raise place.mistake("must have the field 'rules': a list of rules, first match wins")
    rules = _list(top["rules"], place.at("rules"))
    return Script(name, tuple(_rule(rule, place.at("rules").at(i)) for i, rule in enumerate(rules)))


def _rule(value: object, place: _Place) -> Rule:
    given = _mapping(value, place, tuple(_FIELDS))
    fields = {key: _FIELDS[key](given[key], place.at(key)) for key in given}
    if "calls" in fields and "reply" not in fields:
        fields["reply"] = ""
    return Rule(line=place.line(), **fields)


def _mapping(value: object, place: _Place, allowed: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise place.wanted(f"a mapping with {', '.join(allowed)}", value)
    for key in value:
        if key not in allowed:
            there = place.at(key) if isinstance(key, str) else place
            raise there.mistake(f"is not known: {_shown(key)}; allowed are {', '.join(allowed)}")
    return value


def _list(value: object, place: _Place) -> list[Any]:
    if not isinstance(value, list):
        raise place.wanted("a list", value)
    return value


def _text(value: object, place: _Place) -> str:
    if not isinstance(value, str):
        raise place.wanted("text (in quotes, if it looks like something else)", value)
    return value


def _pattern(value: object, place: _Place) -> str:
    text = _text(value, place)
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise place.mistake(f"must be a regular expression; {text!r}: {error}") from error
    return text


def _one_of(*allowed: str) -> Callable[[object, _Place], str]:
    def read(value: object, place: _Place) -> str:
        if not isinstance(value, str) or value not in allowed:
            raise place.wanted(f"one of {', '.join(allowed)}", value)
        return value

    return read


def _whole(least: int) -> Callable[[object, _Place], int]:
    def read(value: object, place: _Place) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise place.wanted(f"a whole number of at least {least}", value)
        return value

    return read


def _delay(value: object, place: _Place) -> timedelta:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 <= value <= 86_400:  # type: ignore[operator]
        raise place.wanted("seconds, a number from 0 to 86400", value)
    return timedelta(seconds=value)  # type: ignore[arg-type]


def _boolean(value: object, place: _Place) -> bool:
    if not isinstance(value, bool):
        raise place.wanted("true or false", value)
    return value


def _calls(value: object, place: _Place) -> tuple[ScriptedCall, ...]:
    return tuple(_call(call, place.at(i)) for i, call in enumerate(_list(value, place)))


def _call(value: object, place: _Place) -> ScriptedCall:
    given = _mapping(value, place, ("tool", "args"))
    if "tool" not in given:
        raise place.mistake("must name its 'tool'")
    args = given.get("args", {})
    if not isinstance(args, dict):
        raise place.at("args").wanted("a mapping of argument names to values", args)
    _json(args, place.at("args"))
    return ScriptedCall(_text(given["tool"], place.at("tool")), args)


def _json(value: object, place: _Place) -> None:
    match value:
        case dict():
            for key, inner in value.items():
                if not isinstance(key, str):
                    raise place.mistake(f"must have text as names; got {_shown(key)}")
                _json(inner, place.at(key))
        case list():
            for index, inner in enumerate(value):
                _json(inner, place.at(index))
        case float() if not math.isfinite(value):
            raise place.wanted("a finite number", value)
        case None | bool() | int() | float() | str():
            pass
        case _:
            raise place.wanted("a JSON value", value)


def _usage(value: object, place: _Place) -> Usage:
    given = _mapping(value, place, ("input", "output", "cache"))
    tokens = {key: _whole(0)(given[key], place.at(key)) for key in given}
    return Usage(
        input_tokens=tokens.get("input", 0),
        output_tokens=tokens.get("output", 0),
        cache_tokens=tokens.get("cache", 0),
        requests=1,
    )


_FIELDS: dict[str, Callable[[object, _Place], Any]] = {
    "agent": _text,
    "scenario": _one_of(*SCENARIOS),
    "contains": _pattern,
    "step": _whole(0),
    "reply": _text,
    "calls": _calls,
    "delay": _delay,
    "chunks": _whole(1),
    "marker": _boolean,
    "error": _one_of(*get_args(FailureKind)),
    "usage": _usage,
}


def _shown(value: object) -> str:
    if isinstance(value, str | int | float | bool | None):
        return json.dumps(value)[:80]
    return {"dict": "a mapping", "list": "a list"}.get(kind := type(value).__name__, f"a {kind}")
