"""Small pieces of views: text from anywhere made harmless, times, states in their colours.

What an agent or a person wrote may hold terminal escapes, lone surrogates or characters that
turn the line around; none of it reaches the terminal as it is.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

NONE = "-"
_TURNERS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_STYLES = {
    **dict.fromkeys(("started", "completed", "idle", "approved"), "green"),
    **dict.fromkeys(("focused", "processing", "leased"), "cyan"),
    **dict.fromkeys(("suspended", "paused", "queued", "deferred", "pending"), "yellow"),
    **dict.fromkeys(("stopped", "dead_letter", "failed", "timed_out", "rejected"), "red"),
    **dict.fromkeys(("cancelled", "merged", "dropped", "superseded", "expired"), "dim"),
}
PRIORITIES = ("critical", "high", "normal", "low", "background")


def plain(text: str) -> str:
    """Text whose every character a terminal shows instead of obeying; lines and tabs stay."""
    return "".join(c if c in "\n\t" or _harmless(c) else _spelled(c) for c in text)


def _harmless(character: str) -> bool:
    return unicodedata.category(character) not in {"Cc", "Cs"} and character not in _TURNERS


def _spelled(character: str) -> str:
    return f"\\u{ord(character):04x}"


def one_line(text: str) -> str:
    """The same on one line."""
    return plain(" ".join(text.split()))


def state(name: str) -> Text:
    """A status, an attention state or an outcome, in its colour."""
    return Text(one_line(name), style=_STYLES.get(name, ""))


def priority(level: int) -> str:
    """A priority by number and name."""
    name = PRIORITIES[level] if 0 <= level < len(PRIORITIES) else ""
    return f"{level} {name}".strip()


def moment(instant: str | None) -> str:
    """A time to the second, in UTC."""
    return NONE if instant is None else instant[:19].replace("T", " ")


def took(begin: str | None, end: str | None) -> str:
    """How long something took."""
    if begin is None or end is None:
        return NONE
    passed = datetime.fromisoformat(end) - datetime.fromisoformat(begin)
    return span(passed.total_seconds())


def span(seconds: float) -> str:
    """A length of time with two figures that matter."""
    if seconds < 60:
        return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s"


def table(*headers: str, giving: Sequence[str] = (), least: int = 8) -> Table:
    """An open table; in a narrow terminal columns of `giving` give way, down to `least`."""
    made = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    for header in headers:
        if header in giving:
            made.add_column(header, min_width=least, overflow="fold")
        else:
            made.add_column(header, no_wrap=True, overflow="fold")
    return made


def giving(text: str, below: str | None = None) -> Text:
    """A cell that is cut where it does not fit, with a second line where there is one."""
    cell = Text(one_line(text), no_wrap=True, overflow="ellipsis")
    return cell if below is None else cell.append(f"\n{one_line(below)}", style="dim")


def pair(above: str | Text, below: str) -> Text:
    """A cell of two lines, the second of less weight."""
    cell = above.copy() if isinstance(above, Text) else Text(one_line(above))
    return cell.append(f"\n{one_line(below)}", style="dim")


def time_and_day(instant: str) -> Text:
    """A time over its day, in UTC."""
    return pair(instant[11:19], instant[:10])


def facts(known: Mapping[str, RenderableType | None]) -> Table:
    """Names and what they stand for, one a line; what is None is left out."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in known.items():
        if value is not None:
            grid.add_row(name, Text(plain(value)) if isinstance(value, str) else value)
    return grid


def heading(text: str) -> Text:
    """The line over a part of a view."""
    return Text(f"\n{text}", style="bold")


def more(answer: Mapping[str, Any]) -> list[Text]:
    """How to see the next page, if there is one."""
    cursor = answer.get("nextCursor")
    return [Text(f"more: --cursor {plain(cursor)}", style="dim")] if cursor else []
