"""What every reader yields: a recorded conversation, in the order it was spoken."""

from __future__ import annotations

from msgspec import Struct


class Spoken(Struct, frozen=True):
    """One entry of a recorded conversation: somebody said, or only thought, something.

    `addressed_to` is the one it was meant for, None when it went to everybody. A `thought` was
    said to nobody. `person` tells a human speaker from an agent.
    """

    speaker: str
    content: str
    addressed_to: str | None = None
    thought: bool = False
    person: bool = False


class Conversation(Struct, frozen=True):
    """A recorded conversation of persons and agents; `question` is what it set out to answer."""

    title: str
    question: str
    messages: tuple[Spoken, ...]


class ReaderMistake(Exception):
    """A file that cannot be read as a conversation: names the place and what is allowed there."""

    def __init__(self, source: str, where: str, problem: str) -> None:
        super().__init__(": ".join(part for part in (source, where, problem) if part))
        self.source, self.where, self.problem = source, where, problem
