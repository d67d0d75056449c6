"""Where in a TOML text a key stands, so that a mistake can be shown with its line."""

from __future__ import annotations

import re

_HEADER = re.compile(r"^\s*\[\[?\s*(?P<path>[^\[\]]+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"""^\s*(?P<path>(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*\S+?)*)\s*=""")
_PART = re.compile(r""""([^"]*)"|'([^']*)'|([A-Za-z0-9_-]+)""")

Path = tuple[str, ...]


def line_of(text: str, path: Path) -> int:
    """Find the line (from 1) of the key at `path`, or of the closest table around it.

    Keys of an inline table are found at the line of that table; with nothing found, line 1.
    """
    places = _places(text)
    for length in range(len(path), 0, -1):
        if path[:length] in places:
            return places[path[:length]]
    return 1


def _places(text: str) -> dict[Path, int]:
    places: dict[Path, int] = {}
    table: Path = ()
    for number, line in enumerate(text.splitlines(), start=1):
        if header := _HEADER.match(line):
            table = _parts(header["path"])
            _note(places, table, number)
        elif key := _KEY.match(line):
            _note(places, table + _parts(key["path"]), number)
    return places


def _note(places: dict[Path, int], path: Path, line: int) -> None:
    for length in range(1, len(path) + 1):
        places.setdefault(path[:length], line)


def _parts(dotted: str) -> Path:
    return tuple(next(part for part in match if part) for match in _PART.findall(dotted))
