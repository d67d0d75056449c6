"""A reply as it grows in a terminal, which cannot take back what it has shown.

Pieces of a reply come while it is written and may be lost, doubled or void where a stream broke
off; what is recorded comes for sure. So after a break pieces are held back until something
recorded says how the text goes, and where the recorded text is another than the shown one, it is
shown whole, on a new line.
"""

from __future__ import annotations

from typing import Any

from undivided.cli.client import OVER, RESUMED


class Spoken:
    """What of one reply was shown; `take` answers what to show next."""

    def __init__(self) -> None:
        self.tools: list[str] = []
        self._before = ""
        self._step = -1
        self._heard = ""
        self._shown = ""
        self._sure = True

    def take(self, event: str, data: dict[str, Any], recorded: bool) -> str:
        """The text to add after `event`; `recorded` if it had an id."""
        if event == "text_delta":
            return self._piece(data, recorded)
        if event == RESUMED:
            self._heard, self._sure = "", False
            return ""
        if event in OVER:
            return self._last(data)
        self._sure = True
        return self._grown() if event == "tool_start" else ""

    def _piece(self, data: dict[str, Any], recorded: bool) -> str:
        if data["step"] != self._step:
            self._begin(data["step"])
        self._heard = data["text"] if data.get("restart") else self._heard + data["text"]
        self._sure = self._sure or recorded
        return self._grown() if self._sure else ""

    def _begin(self, step: int) -> None:
        self._before += self._shown
        self._step, self._heard, self._shown = step, "", ""

    def _grown(self) -> str:
        if not self._heard:
            return ""
        goes_on = self._heard.startswith(self._shown)
        more = self._heard[len(self._shown) :] if goes_on else f"\n{self._heard}"
        self._shown = self._heard
        return more

    def _last(self, data: dict[str, Any]) -> str:
        """The end names the whole reply: whatever of it was never shown is shown now."""
        reply = data.get("reply") or ""
        shown = self._before + self._shown
        if reply.strip() in shown:
            return ""
        if self._shown and reply.startswith(self._shown):
            return reply[len(self._shown) :]
        return f"\n{reply}" if shown else reply
