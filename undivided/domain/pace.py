"""How often an agent's heart beats: bounds, deep sleep, and spreading over agents."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from hashlib import sha256

DEFAULT_INTERVAL_S = 6 * 3600.0
SHORTEST_S, LONGEST_S = 5 * 60.0, 24 * 3600.0
FIRST_AFTER_S = 300
"""No beat of a new agent, or with a new interval, comes sooner."""
AGAIN_AFTER_S = 5
"""A beat that was missed does not come sooner."""
IDLE_BEATS = 3
"""So many idle beats in a row are deep sleep."""


def clamped(interval_s: float | None) -> float:
    """An interval that a heart can have, to the millisecond; the default where it is no number."""
    if interval_s is None or not math.isfinite(interval_s):
        return DEFAULT_INTERVAL_S
    return round(min(max(interval_s, SHORTEST_S), LONGEST_S), 3)


def pace_after(interval_s: float, streak: int) -> float:
    """The time to the next beat after so many idle ones: twice as long in deep sleep."""
    return min(2 * interval_s, LONGEST_S) if streak >= IDLE_BEATS else interval_s


def spread(name: str, within_s: float) -> int:
    """A number of whole seconds from 0 to before `within_s`, always the same for one name."""
    share = int.from_bytes(sha256(name.encode("utf-8", "surrogatepass")).digest()[:4])
    return share * int(within_s) // 2**32


def first_at(name: str, at: datetime, every_s: float) -> datetime:
    """When what comes every so often comes first; agents that begin together are spread."""
    return at + timedelta(seconds=max(FIRST_AFTER_S, spread(name, every_s)))


def again_at(name: str, now: datetime, every_s: float) -> datetime:
    """When something comes that was missed while nobody worked."""
    return now + timedelta(seconds=max(AGAIN_AFTER_S, spread(name, every_s)))


def slot_after(slot: datetime, every_s: float, now: datetime) -> datetime:
    """The first of `slot`, `slot + every`, … that is after `now`."""
    every = timedelta(seconds=every_s)
    return slot + every * max(0, (now - slot) // every + 1)


def of_memory(agent_id: str) -> str:
    """The name by which an agent's consolidations are spread: apart from its beats."""
    return f"{agent_id}/memory"
