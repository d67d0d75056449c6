"""An event in its envelope: as it stands in the log, or is about to."""

from __future__ import annotations

from datetime import datetime

from undivided.domain.events.catalogue import Event
from undivided.domain.value import Value


class Meta(Value, frozen=True, omit_defaults=True):
    """Why an event is there: what caused it, what it belongs to, who acted."""

    actor: str = "system"
    causation: str | None = None
    """Id of the event that caused this one, or `request:<hash>` of a request with a key."""
    correlation: str | None = None
    """Id of the event that began the whole story."""
    traceparent: str | None = None
    imported: bool = False
    """Recorded by another installation, whose clock `at` is of; it came here later."""


class Recorded(Value, frozen=True):
    """One event of one stream. `at` is the database's clock and the reducers' only clock."""

    id: str
    stream: str
    version: int
    event: Event
    meta: Meta
    at: datetime


def agent_stream(agent_id: str) -> str:
    """Mailbox, attention, decisions and memory of one agent."""
    return f"agent:{agent_id}"


def session_stream(session_id: str) -> str:
    """Turns and steps of one session."""
    return f"session:{session_id}"


def user_stream(user_id: str) -> str:
    """Notices to one person."""
    return f"user:{user_id}"
