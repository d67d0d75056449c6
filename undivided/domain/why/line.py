"""One line of a story, and what the events that it is made of have in common."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from undivided.domain.decisions import Decision

Kind = Literal[
    "accepted", "picked", "passed_over", "weighed", "merged", "joined", "deferred", "preempted",
    "preempts", "resurfaced", "resumed", "dropped", "reprioritized", "requeued", "completed",
    "cancelled", "dead_letter", "answered", "stop_requested", "turn_started", "turn_suspended",
    "turn_resumed", "turn_yielded", "turn_updated", "turn_nudged", "turn_ended", "at_work",
    "survivor",
]  # fmt: skip
"""What a sentence is about."""


class Line(Struct, frozen=True):
    """What happened, in a word and in a sentence."""

    kind: Kind
    text: str


class Deeds(Struct, frozen=True):
    """What a turn did: how often its model responded, and which tools ran how often."""

    responses: int = 0
    tools: tuple[tuple[str, int], ...] = ()


def decision_of(event: object) -> Decision | None:
    """The decision that an event carries out, if it does."""
    made = getattr(event, "decision", None)
    return made if isinstance(made, Decision) else None
