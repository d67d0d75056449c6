"""Events of what comes by the clock: heartbeats, daily reports, memory consolidations.

Each names the moment of the next, so that a fold needs neither clock nor time zones.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from undivided.domain.value import Value

AskedBy = Literal["timer", "person"]
BeatSkipped = Literal["idle", "outside_hours", "person_first", "still_there", "mailbox_full"]
ConsolidationSkipped = Literal["nothing_new", "missed", "still_there", "mailbox_full"]


class HeartbeatEnqueued(Value, frozen=True, kw_only=True):
    """A heartbeat is in the mailbox as `item_id`; `fingerprint` is what there was to do.

    One that a person asked for comes besides the others: it has no `next_at`. It tells the agent
    of what is `overdue`, which is thereby told.
    """

    agent_id: str
    item_id: str
    by: AskedBy
    fingerprint: str
    next_at: datetime | None = None
    overdue: tuple[str, ...] = ()


class HeartbeatSkipped(Value, frozen=True, kw_only=True):
    """Its time came and nothing was enqueued; `streak` idle beats in a row make `pace_s` longer.

    In deep sleep `awake_at` is when the next comes if something reaches the agent before.
    """

    agent_id: str
    reason: BeatSkipped
    streak: int
    pace_s: float
    next_at: datetime
    awake_at: datetime | None = None


class HeartbeatScheduled(Value, frozen=True, kw_only=True):
    """A beat that was missed by `missed_s` while nobody worked comes later, apart from others."""

    agent_id: str
    next_at: datetime
    missed_s: float


class DailyReportScheduled(Value, frozen=True, kw_only=True):
    """When an agent is asked for its next report; a report of the day `missed` is not made up."""

    agent_id: str
    next_at: datetime
    missed: str | None = None


class DailyReportEnqueued(Value, frozen=True, kw_only=True):
    """The report of `day`, the date in the agent's time zone, is asked for by `item_id`."""

    agent_id: str
    item_id: str
    by: AskedBy
    day: str
    next_at: datetime | None = None


class MemoryConsolidationEnqueued(Value, frozen=True, kw_only=True):
    """The agent goes over what it remembers; what came before place `next_seq` is taken in."""

    agent_id: str
    item_id: str
    next_seq: int
    next_at: datetime


class MemoryConsolidationSkipped(Value, frozen=True, kw_only=True):
    """Its time came and nothing was enqueued."""

    agent_id: str
    reason: ConsolidationSkipped
    next_at: datetime
