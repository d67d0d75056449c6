"""Which reader takes a file: told by its content, or by the person who asks."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from undivided.cli.readers import openai_chat, own_export, who_and_when
from undivided.cli.readers.conversation import Conversation
from undivided.cli.readers.source import Source, load


class Reader(Protocol):
    """What each reader module offers."""

    FORMAT: str

    def recognises(self, source: Source) -> bool:
        """Whether a file looks like this format."""

    def read(self, source: Source) -> Conversation:
        """The conversation in it; raises ReaderMistake for what the format does not allow."""


READERS: tuple[Reader, ...] = (own_export, who_and_when, openai_chat)
FORMATS = tuple(reader.FORMAT for reader in READERS)


def read_conversation(path: Path, asked: str | None = None) -> Conversation:
    """The conversation in a file.

    `asked` names the format; without it the content decides. Raises ReaderMistake.
    """
    source = load(path)
    return _reader(source, asked).read(source)


def _reader(source: Source, asked: str | None) -> Reader:
    if asked is not None:
        for reader in READERS:
            if asked == reader.FORMAT:
                return reader
        raise source.mistake("--format", f"must be one of {', '.join(FORMATS)}, not {asked!r}")
    for reader in READERS:
        if reader.recognises(source):
            return reader
    raise source.mistake(
        "",
        'is none of the known formats: an export (its first line has "undivided-export"), '
        'who-and-when (an object with "history") or openai-chat (messages with "role")',
    )
