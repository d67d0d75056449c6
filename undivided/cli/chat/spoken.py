"""A reply as it grows, put together from pieces that may be lost, doubled or void.

Pieces come while a response is written; what is recorded comes for sure. After a break in the
stream pieces are held back until something recorded says how the text goes, and where the
recorded text is another than the shown one, it takes its place.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from undivided.cli.client import OVER, RESUMED


class Change(Struct, frozen=True):
    """What to show: the beginning of a response, more of it, or another text in its place."""

    how: Literal["begin", "add", "instead"]
    text: str


class Spoken:
    """What of one reply was shown; `take` answers what to show next."""

    def __init__(self) -> None:
        self._earlier = ""
        self._step = -1
        self._heard = ""
        self._shown = ""
        self._sure = True

    def take(self, event: str, data: dict[str, Any], recorded: bool) -> Change | None:
        """What changes with `event`; it is recorded if it had an id."""
        if event == "text_delta":
            return self._piece(data, recorded)
        if event == RESUMED:
            self._heard, self._sure = "", False
            return None
        if event in OVER:
            return self._last(data.get("reply") or "")
        self._sure = True
        return self._grown() if event == "tool_start" else None

    def _piece(self, data: dict[str, Any], recorded: bool) -> Change | None:
        if data["step"] != self._step:
            self._earlier += self._shown
            self._step, self._heard, self._shown = data["step"], "", ""
        self._heard = data["text"] if data.get("restart") else self._heard + data["text"]
        self._sure = self._sure or recorded
        return self._grown() if self._sure else None

    def _grown(self) -> Change | None:
        shown, self._shown = self._shown, self._heard or self._shown
        return _change(shown, self._shown)

    def _last(self, reply: str) -> Change | None:
        """The end names the whole reply: whatever of it was never shown is shown now."""
        if reply.strip() in self._earlier + self._shown:
            return None
        return _change(self._shown, reply)


def _change(shown: str, text: str) -> Change | None:
    if text == shown:
        return None
    if not shown:
        return Change("begin", text)
    if text.startswith(shown):
        return Change("add", text[len(shown) :])
    return Change("instead", text)
