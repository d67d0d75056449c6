"""The terminal of a chat: text that grows, and that can be taken back as long as it is in sight."""

from __future__ import annotations

import shutil
from typing import TextIO

from rich.cells import cell_len

from undivided.cli.chat.spoken import Change
from undivided.cli.views.cells import one_line, plain

_UP, _RIGHT, _CLEAR = "\x1b[{}A", "\x1b[{}C", "\x1b[J"
_BOLD, _DIM, _USUAL = "\x1b[1m", "\x1b[2m", "\x1b[0m"


class Screen:
    """Writes to a terminal and knows where the cursor is, for nobody else writes meanwhile."""

    def __init__(self, out: TextIO, size: tuple[int, int] | None = None) -> None:
        self._out, self._size = out, size
        self._column = 0
        self._start = 0
        self._text = ""
        self._prompted = False

    def prompt(self, name: str) -> None:
        """Say who speaks now, at the start of a line."""
        said = f"{one_line(name)}> "
        self._out.write(f"{_BOLD}{said}{_USUAL}")
        self._column, self._prompted = cell_len(said), True
        self._out.flush()

    def show(self, change: Change) -> None:
        """Show the beginning of a response, more of it, or another one in its place."""
        text = plain(change.text).replace("\t", "    ")
        if change.how == "begin" or (change.how == "instead" and not self._take_back()):
            self._begin()
        self._text += text
        self._write(text)

    def note(self, line: str) -> None:
        """A line of its own that is not part of what is said."""
        self.end()
        self._out.write(f"{_DIM}[{one_line(line)}]{_USUAL}\n")
        self._out.flush()

    def end(self) -> None:
        """Go to the start of a line."""
        if self._column:
            self._write("\n")
        self._prompted = False

    def _begin(self) -> None:
        if not self._prompted:
            self.end()
        self._prompted = False
        self._start, self._text = self._column, ""

    def _take_back(self) -> bool:
        """Remove the response that is being shown; false if part of it is out of sight."""
        columns, lines = self._size or shutil.get_terminal_size()
        rows, _ = landed(self._text, self._start, columns)
        if rows >= lines - 1:
            return False
        up = _UP.format(rows) if rows else ""
        right = _RIGHT.format(self._start) if self._start else ""
        self._out.write(f"{up}\r{right}{_CLEAR}")
        self._column, self._text = self._start, ""
        return True

    def _write(self, text: str) -> None:
        columns, _ = self._size or shutil.get_terminal_size()
        _, self._column = landed(text, self._column, columns)
        self._out.write(text)
        self._out.flush()


def landed(text: str, column: int, columns: int) -> tuple[int, int]:
    """How many rows down, and in which column, a cursor is after `text`."""
    rows = 0
    for character in text:
        width = 0 if character == "\n" else cell_len(character)
        if character == "\n" or column + width > columns:
            rows, column = rows + 1, 0
        column += width
    return rows, column
