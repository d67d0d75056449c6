"""Active hours: when in its own time zone an agent's heart beats."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

from undivided.domain.policy import Policy
from undivided.domain.value import Value

_TIME = re.compile(r"([01]\d|2[0-3]):([0-5]\d)")
LOOKED_AHEAD = timedelta(days=2)
"""An hour of the day comes within a day; a change of the clocks may move it by some hours."""
_MINUTE = timedelta(minutes=1)


class Hours(Value, frozen=True):
    """From minute `start` of the day to before minute `end`; `note` says what is not as asked."""

    start: int
    end: int
    zone: str
    note: str = ""


def hours_of(policy: Policy) -> Hours | None:
    """The active hours that a policy sets; None where it sets none."""
    start, end = minute_of(policy.active_hours_start), minute_of(policy.active_hours_end)
    if start is None or end is None:
        return None
    if _zone(policy.timezone) is None:
        note = f"time zone {policy.timezone[:60]!r} is not known; active hours are told in UTC"
        return Hours(start, end, "UTC", note)
    return Hours(start, end, policy.timezone)


def minute_of(text: str) -> int | None:
    """The minute of the day that `HH:MM` names; None if it names none."""
    found = _TIME.fullmatch(text)
    return int(found[1]) * 60 + int(found[2]) if found else None


def local_minute(zone: str, at: datetime) -> int:
    """The minute of the day that clocks in a zone show."""
    there = at.astimezone(zone_of(zone))
    return there.hour * 60 + there.minute


def is_active(hours: Hours | None, at: datetime) -> bool:
    """Whether a moment is within active hours: the start is, the end is not.

    Hours that end before they start go on over midnight; where both are the same, never.
    """
    if hours is None:
        return True
    minute = local_minute(hours.zone, at)
    if hours.start <= hours.end:
        return hours.start <= minute < hours.end
    return minute >= hours.start or minute < hours.end


def next_slot(hours: Hours | None, slot: datetime, pace_s: float, now: datetime) -> datetime:
    """The first of `slot`, `slot + pace`, … that is after `now` and within active hours.

    Where none of the next two days is, the moment at which they begin; where they never do, the
    first after `now` all the same.
    """
    pace = timedelta(seconds=pace_s)
    first = slot + pace * max(0, (now - slot) // pace + 1)
    steps = (pace, _MINUTE) if pace > _MINUTE else (_MINUTE,)
    for step in steps:
        at = first
        while at - first <= LOOKED_AHEAD:
            if is_active(hours, at):
                return at
            at += step
    return first


def zone_of(name: str) -> tzinfo:
    """The zone of a name; UTC where there is none of it."""
    return _zone(name) or UTC


def _zone(name: str) -> tzinfo | None:
    """The zone of a name; the library reads it once, from the machine or the package `tzdata`."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return None
