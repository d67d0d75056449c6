"""How a mistake in the config file is told: file, line, and what is allowed there."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec import Struct

from undivided.domain.errors import Invalid
from undivided.store.toml_places import line_of

Where = tuple[str, ...]
Shapes = Mapping[Where, type[Struct]]


class SettingsMistake(Invalid):
    """Settings or config cannot be used; the text says where, and what is allowed."""

    code = "settings_mistake"


class Source:
    """The text of one config file, able to say where a mistake stands."""

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self.text = text

    def mistake(self, where: tuple[str, ...], what: str) -> SettingsMistake:
        """Name a mistake at the key `where`."""
        return SettingsMistake(f"{self.path}, line {line_of(self.text, where)}: {what}")

    def parse(self) -> dict[str, Any]:
        """Read the TOML, or say at which line it stops being TOML."""
        try:
            return tomllib.loads(self.text)
        except tomllib.TOMLDecodeError as error:
            raise SettingsMistake(f"{self.path}, {_toml_place(str(error), self.text)}") from None


_UNKNOWN = re.compile(r"Object contains unknown field `(?P<key>[^`]*)`(?: - at `\$(?P<at>.*)`)?$")
_MISSING = re.compile(r"missing required field `(?P<key>[^`]*)`(?: - at `\$(?P<at>.*)`)?$")
_WRONG = re.compile(
    r"Expected `(?P<want>[^`]*)`(?P<rule>[^`,]*?)(?:, got `(?P<got>[^`]*)`)?"
    r"(?: - at `\$(?P<at>.*)`)?$"
)
_TOML_WORDS: Mapping[str, str] = MappingProxyType(
    {
        "float": "a number",
        "int": "a whole number",
        "str": "text in quotes",
        "object": "a table",
        "array": "a list",
        "bool": "true or false",
    }
)


def explained(message: str, raw: dict[str, Any], shapes: Shapes) -> tuple[Where, str]:
    """Turn the checker's message about `raw` into a place and a sentence."""
    if unknown := _UNKNOWN.search(message):
        around = _path(unknown["at"], raw, shapes)
        names = shapes[_general(around)].__struct_fields__
        return (*around, unknown["key"]), unknown_key(unknown["key"], ".".join(around), names)
    if missing := _MISSING.search(message):
        around = _path(missing["at"], raw, shapes)
        return around, f'{".".join(around)} lacks "{missing["key"]}"'
    if wrong := _WRONG.search(message):
        where = _path(wrong["at"], raw, shapes)
        got = f", not {_word(wrong['got'])}" if wrong["got"] else ""
        return where, f"{'.'.join(where)} must be {_word(wrong['want'])}{wrong['rule']}{got}"
    return (), message


def unknown_key(key: str, around: str, allowed: Iterable[str]) -> str:
    """Say that `key` is not known in the table `around`, and which ones are."""
    place = f"in [{around}]" if around else "at the top"
    return f'unknown key "{key}" {place}; allowed are {", ".join(allowed)}'


def because(error: Exception) -> str:
    """Say in words why a file could not be read."""
    return error.strerror or "unreadable" if isinstance(error, OSError) else "it is not UTF-8"


def _word(kind: str) -> str:
    return " or ".join(_TOML_WORDS.get(part, part) for part in kind.split(" | ") if part != "null")


def _general(around: Where) -> Where:
    return ("models", "*", *around[2:]) if around[:1] == ("models",) else around


def _path(at: str | None, raw: dict[str, Any], shapes: Shapes) -> Where:
    """Read the checker's path; where it says only "some key", find the profile it means."""
    parts = tuple(re.findall(r"\[\.\.\.\]|[^.\[\]]+", at or ""))
    if "[...]" not in parts:
        return parts
    profile = shapes["models", "*"]
    suspects = [name for name, given in raw["models"].items() if not _fits(given, profile)]
    return tuple(suspects[0] if part == "[...]" else part for part in parts)


def _fits(given: object, shape: type[Struct]) -> bool:
    try:
        msgspec.convert(given, shape)
    except msgspec.ValidationError:
        return False
    return True


def _toml_place(message: str, text: str) -> str:
    what, _, place = message.rpartition(" (at ")
    number = re.search(r"line (\d+)", place)
    line = int(number[1]) if number else max(1, len(text.splitlines()))
    return f"line {line}: not valid TOML: {what or message}"
