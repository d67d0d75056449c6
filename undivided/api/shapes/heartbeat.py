"""What the clock brings to an agent, as the API shows it."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from undivided.api.answers import instant, instant_or_none
from undivided.api.shapes.callbacks import PendingCallback, Wakeup, pending_of, wakeups_of
from undivided.domain.active_hours import hours_of
from undivided.domain.heartbeat import beats_at, idle_beats, sleeps_deeply
from undivided.domain.pace import pace_after
from undivided.domain.state.callback import CallbackRow
from undivided.store.queries.heartbeat import HeartbeatThen


class ActiveHours(Struct, frozen=True, rename="camel", kw_only=True):
    """The hours of the day in which the heart beats, as clocks in `timezone` show them.

    `note` says what about them is not as the policy asks.
    """

    start: str
    end: str
    timezone: str
    note: str | UnsetType = UNSET


class DailyReport(Struct, frozen=True, rename="camel", kw_only=True):
    """When the agent is asked for its report; null where it is not."""

    at: str
    timezone: str
    next_run_at: str | None
    last_day: str | None
    last_item_id: str | None


class MemoryConsolidation(Struct, frozen=True, rename="camel", kw_only=True):
    """How often the agent goes over what it remembers; 0 means never."""

    every_s: float
    next_run_at: str | None
    last_run_at: str | None
    last_item_id: str | None


class Heartbeat(Struct, frozen=True, rename="camel", kw_only=True):
    """An agent's heartbeat. `paceS` is longer than the interval in deep sleep.

    `nextWakeAt`: the next beat or wakeup, whichever comes first.
    """

    agent_id: str
    status: Literal["running", "stopped", "off"]
    heartbeat_interval_s: float
    pace_s: float
    deep_sleep: bool
    idle_beats: int
    last_run_at: str | None
    last_item_id: str | None
    next_run_at: str | None
    active_hours: ActiveHours | None
    daily_report: DailyReport | None
    memory_consolidation: MemoryConsolidation
    next_wake_at: str | None
    wakeups: list[Wakeup]
    pending_callbacks: list[PendingCallback]
    position: str


def heartbeat_shape(then: HeartbeatThen, callbacks: list[CallbackRow], position: str) -> Heartbeat:
    """How a heartbeat is shown, with all that the agent is to hear of."""
    agent, row = then.agent, then.row
    beat_at, wakeups = instant_or_none(beats_at(agent, row)), wakeups_of(callbacks)
    running = row.lifecycle == "started"
    return Heartbeat(
        agent_id=agent.id,
        status="off" if not row.enabled else "running" if running else "stopped",
        heartbeat_interval_s=row.interval_s,
        pace_s=pace_after(row.interval_s, idle_beats(agent, row)),
        deep_sleep=sleeps_deeply(agent, row),
        idle_beats=idle_beats(agent, row),
        last_run_at=instant_or_none(row.last_at),
        last_item_id=row.item_id,
        next_run_at=beat_at,
        active_hours=_active_hours(then),
        daily_report=_daily_report(then),
        memory_consolidation=MemoryConsolidation(
            every_s=row.consolidate_s,
            next_run_at=instant_or_none(row.consolidate_at) if running else None,
            last_run_at=instant_or_none(row.consolidated_at),
            last_item_id=row.consolidation_item_id,
        ),
        next_wake_at=min(filter(None, (beat_at, *(one.wake_at for one in wakeups))), default=None),
        wakeups=wakeups,
        pending_callbacks=pending_of(callbacks),
        position=position,
    )


def _active_hours(then: HeartbeatThen) -> ActiveHours | None:
    policy, hours = then.agent.policy, hours_of(then.agent.policy)
    if hours is None:
        return None
    return ActiveHours(
        start=policy.active_hours_start, end=policy.active_hours_end, timezone=hours.zone,
        note=hours.note or UNSET,
    )  # fmt: skip


def _daily_report(then: HeartbeatThen) -> DailyReport | None:
    row = then.row
    if row.report_at is None:
        return None
    placed = row.report_placed and row.lifecycle == "started"
    return DailyReport(
        at=row.report_time,
        timezone=row.report_zone,
        next_run_at=instant(row.report_at) if placed else None,
        last_day=row.reported_day,
        last_item_id=row.report_item_id,
    )
