"""How a turn can end: a closed union that every caller must match."""

from __future__ import annotations

from undivided.domain.value import Value

EMPTY_REPLY = "empty reply from LLM-invoking item"
MARKER_MISSING = "completion marker missing from reply"


class Completed(Value, frozen=True, tag="completed"):
    """The turn said what it had to say; `reply` is what the caller gets."""

    reply: str


class Incomplete(Value, frozen=True, tag="incomplete"):
    """The turn ended without a usable answer; `reason` says what is missing.

    `reply` is what it said all the same.
    """

    reason: str
    reply: str = ""


class Cancelled(Value, frozen=True, tag="cancelled"):
    """Somebody asked to stop it; `by` says who."""

    by: str


class Failed(Value, frozen=True, tag="failed"):
    """The model or the runtime could not do it; `retryable` says whether time may help."""

    reason: str
    detail: str
    retryable: bool


class TimedOut(Value, frozen=True, tag="timed_out"):
    """The backstop of this attempt expired after `after_s` seconds."""

    after_s: float


class Interrupted(Value, frozen=True, tag="interrupted"):
    """The agent was stopped; its item waits again as if it had not been picked."""

    reason: str


Outcome = Completed | Incomplete | Cancelled | Failed | TimedOut | Interrupted
"""`preempted` joins with interrupts; `yielded` and suspension do not end a turn."""


def outcome_name(outcome: Outcome) -> str:
    """The literal by which API and log name this outcome."""
    return str(outcome.__struct_config__.tag)
