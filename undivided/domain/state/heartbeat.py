"""What the clock will bring to an agent."""

from __future__ import annotations

from datetime import datetime

from undivided.domain.state.agent import Lifecycle
from undivided.domain.value import Value


class HeartbeatRow(Value, frozen=True, kw_only=True):
    """When an agent's heart beats next and how it has beaten; its reports and consolidations.

    `pace_s` is the time between two beats: the agent's interval, or longer after `streak` idle
    beats in a row. `judged_at`: when a beat was last decided about. `awake_at`: of a longer pace,
    when the next would come if something reached the agent after that. `fingerprint` is what
    there was to do at the last beat that was enqueued, as `item_id`, at `last_at`; None before
    the first. `put_off`: the next was missed, and comes later for that.

    `report_time` and `report_zone` are as the policy says, empty without daily reports;
    `report_placed`: whether `report_at` was reckoned from them yet. `reported_day` is the last
    day that a report was asked for.

    `consolidate_s` is 0 without consolidations; items before `consolidated_seq` are taken in.
    """

    id: str
    lifecycle: Lifecycle
    interval_s: float
    enabled: bool
    pace_s: float
    next_at: datetime
    judged_at: datetime
    awake_at: datetime | None = None
    streak: int = 0
    fingerprint: str | None = None
    last_at: datetime | None = None
    item_id: str | None = None
    put_off: bool = False
    report_time: str = ""
    report_zone: str = ""
    report_at: datetime | None = None
    report_placed: bool = False
    reported_day: str | None = None
    report_item_id: str | None = None
    consolidate_s: float = 0
    consolidate_at: datetime | None = None
    consolidated_seq: int = 1
    consolidated_at: datetime | None = None
    consolidation_item_id: str | None = None
