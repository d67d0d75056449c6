"""The heartbeat's row: what the clock will bring to an agent."""

from __future__ import annotations

from msgspec.structs import replace

from undivided.domain.events import agents as a
from undivided.domain.events import heartbeats as h
from undivided.domain.pace import clamped, first_at, of_memory
from undivided.domain.policy import Policy
from undivided.domain.recorded import Recorded
from undivided.domain.state.agent import Lifecycle
from undivided.domain.state.heartbeat import HeartbeatRow

LIFE: dict[type, Lifecycle] = {
    a.AgentStarted: "started", a.AgentResumed: "started", a.AgentPaused: "paused",
    a.AgentStopped: "stopped", a.AgentDeleted: "deleted",
}  # fmt: skip
TOUCHED = (
    a.AgentCreated | a.AgentConfigured | a.PolicyAdopted | a.AgentStarted | a.AgentStopped
    | a.AgentPaused | a.AgentResumed | a.AgentDeleted
    | h.HeartbeatEnqueued | h.HeartbeatSkipped | h.HeartbeatScheduled
    | h.DailyReportScheduled | h.DailyReportEnqueued
    | h.MemoryConsolidationEnqueued | h.MemoryConsolidationSkipped
)  # fmt: skip


def keys(recorded: Recorded) -> tuple[str, ...]:
    """The agent that the event is about."""
    event = recorded.event
    return (event.agent_id,) if isinstance(event, TOUCHED) else ()


def reduce(row: HeartbeatRow | None, recorded: Recorded) -> HeartbeatRow | None:
    """The row after `recorded`."""
    event, at = recorded.event, recorded.at
    if isinstance(event, a.AgentCreated):
        return _born(event, recorded)
    if row is None:
        return None
    match event:
        case a.AgentConfigured():
            interval = clamped(event.heartbeat_interval_s)
            if interval == row.interval_s:
                return row
            return replace(
                row, interval_s=interval, pace_s=interval, next_at=first_at(row.id, at, interval),
                awake_at=None, streak=0, put_off=False, judged_at=at,
            )  # fmt: skip
        case a.PolicyAdopted():
            return _governed(row, event.policy, recorded)
        case (
            a.AgentStarted() | a.AgentStopped() | a.AgentPaused() | a.AgentResumed()
            | a.AgentDeleted()
        ):  # fmt: skip
            return replace(row, lifecycle=LIFE[type(event)])
        case _:
            return _beaten(row, recorded)


def _beaten(row: HeartbeatRow, recorded: Recorded) -> HeartbeatRow:
    event, at = recorded.event, recorded.at
    match event:
        case h.HeartbeatEnqueued():
            return replace(
                row, last_at=at, item_id=event.item_id, fingerprint=event.fingerprint, streak=0,
                pace_s=row.interval_s, next_at=event.next_at or row.awake_at or row.next_at,
                awake_at=None, judged_at=at, put_off=row.put_off and event.next_at is None,
            )  # fmt: skip
        case h.HeartbeatSkipped():
            return replace(
                row, streak=event.streak, pace_s=event.pace_s, next_at=event.next_at,
                awake_at=event.awake_at, judged_at=at, put_off=False,
            )  # fmt: skip
        case h.HeartbeatScheduled():
            return replace(row, next_at=event.next_at, awake_at=None, put_off=True)
        case _:
            return _reported(row, recorded)


def _reported(row: HeartbeatRow, recorded: Recorded) -> HeartbeatRow:
    event, at = recorded.event, recorded.at
    match event:
        case h.DailyReportScheduled():
            return replace(row, report_at=event.next_at, report_placed=True)
        case h.DailyReportEnqueued():
            return replace(
                row, report_at=event.next_at or row.report_at, reported_day=event.day,
                report_item_id=event.item_id,
            )  # fmt: skip
        case h.MemoryConsolidationEnqueued():
            return replace(
                row, consolidate_at=event.next_at, consolidated_seq=event.next_seq,
                consolidated_at=at, consolidation_item_id=event.item_id,
            )  # fmt: skip
        case h.MemoryConsolidationSkipped():
            return replace(row, consolidate_at=event.next_at)
        case _:
            return row


def _born(event: a.AgentCreated, recorded: Recorded) -> HeartbeatRow:
    at, interval = recorded.at, clamped(event.heartbeat_interval_s)
    row = HeartbeatRow(
        id=event.agent_id, lifecycle="started", interval_s=interval, enabled=True,
        pace_s=interval, next_at=first_at(event.agent_id, at, interval), judged_at=at,
    )  # fmt: skip
    return _governed(row, event.policy, recorded)


def _governed(row: HeartbeatRow, policy: Policy, recorded: Recorded) -> HeartbeatRow:
    """The row under a policy; what that leaves as it was goes on as it would have."""
    at, every = recorded.at, policy.memory_consolidation_s
    row = replace(row, enabled=policy.heartbeat)
    if (policy.daily_report_at, policy.timezone) != (row.report_time, row.report_zone):
        row = replace(
            row, report_time=policy.daily_report_at, report_zone=policy.timezone,
            report_at=at if policy.daily_report_at else None, report_placed=False,
        )  # fmt: skip
    if every != row.consolidate_s:
        first = first_at(of_memory(row.id), at, every) if every > 0 else None
        row = replace(row, consolidate_s=every, consolidate_at=first)
    return row
