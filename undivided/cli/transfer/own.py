"""An export of ours as a history: its events, transaction by transaction."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from undivided.cli.readers.conversation import ReaderMistake
from undivided.domain.errors import Invalid
from undivided.domain.placed import Placed
from undivided.domain.recorded import Recorded
from undivided.store.event_lines import HEADER, VERSION, placed


def transactions(path: Path) -> Iterator[list[Recorded]]:
    """The events of an export, those of one append together; one line in hand at a time.

    Raises:
        ReaderMistake: a line that is not an event of this log.
    """
    together: list[Placed] = []
    for one in _events(path):
        if together and _apart(together[-1], one):
            yield [other.recorded for other in together]
            together = []
        together.append(one)
    if together:
        yield [other.recorded for other in together]


def _apart(before: Placed, one: Placed) -> bool:
    return before.coordinate.txid != one.coordinate.txid or before.recorded.at != one.recorded.at


def _events(path: Path) -> Iterator[Placed]:
    lines = _objects(path)
    where, header = next(lines, ("line 1", None))
    if not isinstance(header, dict) or header.get(HEADER) != VERSION:
        raise ReaderMistake(path.name, where, f'must be a header with "{HEADER}": {VERSION}')
    for where, value in lines:
        if not isinstance(value, dict):
            raise ReaderMistake(path.name, where, "must be an event, as GET /api/events shows it")
        try:
            yield placed(value)
        except Invalid as error:
            raise ReaderMistake(path.name, where, str(error)) from error


def _objects(path: Path) -> Iterator[tuple[str, Any]]:
    try:
        with path.open(encoding="utf-8-sig") as file:
            for number, text in enumerate(file, start=1):
                if text.strip():
                    yield f"line {number}", _json(path, number, text)
    except (OSError, UnicodeDecodeError) as error:
        raise ReaderMistake(str(path), "", f"cannot be read ({error})") from error


def _json(path: Path, number: int, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ReaderMistake(path.name, f"line {number}", f"is not JSON ({error})") from error
