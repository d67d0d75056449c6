"""Setting how often an agent's heart beats, as the agent itself asks for it."""

from __future__ import annotations

from undivided.domain.errors import Invalid
from undivided.domain.tooling import Act


class SetHeartbeatInterval(Act, frozen=True):
    """Let the heart beat every so many seconds, within bounds."""

    interval_s: float


def wanted_interval(minutes: float | None, milliseconds: float | None) -> SetHeartbeatInterval:
    """The interval that was given in one unit or the other; minutes win.

    Raises:
        Invalid: neither is more than 0.
    """
    if minutes is not None and minutes > 0:
        return SetHeartbeatInterval(minutes * 60)
    if milliseconds is not None and milliseconds > 0:
        return SetHeartbeatInterval(milliseconds / 1000)
    raise Invalid("interval_minutes or interval_ms must be more than 0", "interval_minutes")
