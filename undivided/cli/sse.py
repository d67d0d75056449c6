"""Server-sent events as they come off the wire, in pieces of any size."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct


class ServerEvent(Struct, frozen=True):
    """One event of a stream; `id` is the coordinate to go on from, None on passing events."""

    event: str
    data: str
    id: str | None = None


class Decoder:
    """Puts pieces of a stream together into events; a piece may end anywhere.

    Lines are split at line feeds only: text in JSON may hold other characters that Unicode
    counts as line ends.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._fields: dict[str, list[str]] = {}

    def feed(self, piece: bytes) -> Iterator[ServerEvent]:
        """The events that this piece completes."""
        *lines, self._rest = (self._rest + piece).split(b"\n")
        for line in lines:
            text = line.removesuffix(b"\r").decode("utf-8", "replace")
            if text:
                self._keep(text)
            elif event := self._completed():
                yield event

    def _keep(self, line: str) -> None:
        name, _, value = line.partition(":")
        if name:  # a line that starts with a colon is a heartbeat comment
            self._fields.setdefault(name, []).append(value.removeprefix(" "))

    def _completed(self) -> ServerEvent | None:
        fields, self._fields = self._fields, {}
        if "data" not in fields:
            return None
        names, ids = fields.get("event", ["message"]), fields.get("id")
        return ServerEvent(names[-1], "\n".join(fields["data"]), ids[-1] if ids else None)
