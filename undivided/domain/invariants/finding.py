"""A finding: one place where a history, or a row folded from it, breaks an invariant."""

from __future__ import annotations

from msgspec import Struct

from undivided.domain.events.catalogue import CATALOGUE, Event
from undivided.domain.placed import Placed

Transaction = tuple[Placed, ...]
"""The events of one append, in order."""


class Finding(Struct, frozen=True, kw_only=True):
    """What is wrong, where, and by which rule.

    `invariant` is its number, `rule` the name of the clause that is broken, `subject` the
    agent, item, turn, call, stream or row it is about, `where` the coordinate at which it shows.
    """

    invariant: int
    rule: str
    subject: str
    where: str
    stream: str
    version: int
    text: str


def broken(invariant: int, rule: str, subject: str, placed: Placed, text: str) -> Finding:
    """A finding that shows at one event."""
    return Finding(
        invariant=invariant,
        rule=rule,
        subject=subject,
        where=str(placed.coordinate),
        stream=placed.recorded.stream,
        version=placed.recorded.version,
        text=text,
    )


def name_of(event: Event) -> str:
    """The stored name by which people know an event."""
    return CATALOGUE[type(event)][0]
