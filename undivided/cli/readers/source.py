"""A recorded file as JSON values, each with the place it came from.

The standard library's decoder is used on purpose: it keeps lone surrogates, which real logs
contain and stricter decoders refuse.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from msgspec import Struct

from undivided.cli.readers.conversation import ReaderMistake


class Entry(Struct, frozen=True):
    """One JSON value and where it stands in its file, such as `line 3` or `history[2]`."""

    where: str
    value: Any


class Source(Struct, frozen=True):
    """A file's content: one JSON document, or one JSON value a line (JSONL)."""

    name: str
    document: Any = None
    lines: tuple[Entry, ...] = ()

    def mistake(self, where: str, problem: str) -> ReaderMistake:
        """The error for something in this file that a reader cannot take."""
        return ReaderMistake(self.name, where, problem)


def load(path: Path) -> Source:
    """The JSON or JSONL content of a file; refuses anything else with its line."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise ReaderMistake(str(path), "", f"cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        place = f"byte {error.start}"
        raise ReaderMistake(str(path), place, "is not UTF-8, which it must be") from error
    return parse(path.name, text)


def parse(name: str, text: str) -> Source:
    """The same for text that is at hand already."""
    if not text.strip():
        raise ReaderMistake(name, "", "is empty; a JSON document or JSONL was expected")
    try:
        return Source(name, document=json.loads(text))
    except RecursionError as error:
        raise ReaderMistake(name, "", "is nested too deeply to be a conversation") from error
    except ValueError as whole:
        return _lines(name, text, whole)


def _lines(name: str, text: str, whole: ValueError) -> Source:
    entries: list[Entry] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            entries.append(Entry(f"line {number}", json.loads(line)))
        except (ValueError, RecursionError) as error:
            reason = error if entries else whole
            raise _not_json(name, number, reason) from error
    return Source(name, lines=tuple(entries))


def _not_json(name: str, number: int, reason: Exception) -> ReaderMistake:
    line = number
    if isinstance(reason, json.JSONDecodeError):
        line = number + reason.lineno - 1
        text = f"{reason.msg} at column {reason.colno}"
    else:
        text = str(reason) or type(reason).__name__
    return ReaderMistake(name, f"line {line}", f"is not JSON ({text})")


def text_field(source: Source, entry: Entry, field: str) -> str:
    """A field that must be there and be text."""
    value = entry.value.get(field) if isinstance(entry.value, dict) else None
    if isinstance(value, str):
        return value
    raise source.mistake(entry.where, f'"{field}" must be text, not {described(value)}')


def described(value: object) -> str:
    """A JSON value's kind in words, for error sentences."""
    if value is None:
        return "missing or null"
    names = {bool: "true or false", dict: "an object", list: "a list", str: "text"}
    return names.get(type(value), "a number")
