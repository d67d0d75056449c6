"""Rehearsal models: recorded responses, from a file or from an uploaded recording."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from msgspec.structs import replace

from undivided.domain.dialogue import ModelReply, ModelRequest
from undivided.domain.rehearsal import Recording, parse_recording, respond
from undivided.domain.script import completed
from undivided.store.model_sources import UPLOADED
from undivided.workers.model_files import ParsedFiles, ParsedRecordings
from undivided.workers.model_script import stream


class Rehearsals:
    """Every recording that this process has answered from."""

    def __init__(self, recordings: Callable[[str], Awaitable[bytes]]) -> None:
        self._files = ParsedFiles(parse_recording)
        self._uploaded = ParsedRecordings(parse_recording, recordings)

    async def _recording(self, source: str) -> Recording:
        """The recording that `source` names: a file, or `recording:` and a digest."""
        if source.startswith(UPLOADED):
            return await self._uploaded.get(source.removeprefix(UPLOADED))
        return await self._files.get(source)

    async def answer(
        self, source: str, request: ModelRequest, on_delta: Callable[[str], None]
    ) -> ModelReply:
        """The recorded response to `request`.

        What people and foreign agents said bears no completion marker, and counts as complete.

        Raises:
            ModelFailed: the request differs from the recorded one, or none is left.
        """
        reply = respond(await self._recording(source), request)
        text = reply.text if reply.calls else completed(reply.text, request)
        await stream(text, 1, on_delta)
        return replace(reply, text=text, model=f"rehearsal:{source}")
