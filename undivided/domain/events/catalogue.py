"""The catalogue: the stored name and schema number of every event, in one table.

A name is a literal that never changes once released. A changed shape raises the number and
adds an upcast in `store/upcasts.py`; a golden sample of every (name, number) ever released
must decode for ever (`tests/golden`).
"""

from __future__ import annotations

from undivided.domain.events import (
    agents,
    callbacks,
    flights,
    heartbeats,
    items,
    people,
    sessions,
    triage,
)

Event = (
    agents.AgentCreated
    | agents.AgentConfigured
    | agents.PolicyAdopted
    | agents.AgentStarted
    | agents.AgentStopped
    | agents.AgentPaused
    | agents.AgentResumed
    | agents.AgentDeleted
    | agents.MemoryNoted
    | items.StimulusAccepted
    | items.ItemPicked
    | items.ItemCompleted
    | items.ItemRequeued
    | items.ItemDeadLettered
    | items.AgentIncomplete
    | items.ItemCancelled
    | items.ItemMerged
    | items.ItemDeferred
    | items.ItemResurfaced
    | items.ItemResumed
    | items.ItemDropped
    | items.ItemExpired
    | items.ItemReprioritized
    | items.ItemWeighed
    | items.NoticePosted
    | triage.TriageBegan
    | triage.TriageApplied
    | people.NotificationPosted
    | people.NotificationRead
    | people.NotificationsAllRead
    | people.ApprovalRequested
    | people.ApprovalAnswered
    | people.ApprovalExpired
    | people.ApprovalCancelled
    | heartbeats.HeartbeatEnqueued
    | heartbeats.HeartbeatSkipped
    | heartbeats.HeartbeatScheduled
    | heartbeats.DailyReportScheduled
    | heartbeats.DailyReportEnqueued
    | heartbeats.MemoryConsolidationEnqueued
    | heartbeats.MemoryConsolidationSkipped
    | flights.FlightAcquired
    | flights.FlightReleased
    | flights.FlightFenced
    | flights.FocusSuspended
    | flights.FocusRegained
    | flights.FocusAnswered
    | flights.StopRequested
    | sessions.SessionOpened
    | sessions.SessionArchived
    | sessions.SessionDeleted
    | sessions.TurnStarted
    | sessions.ModelResponded
    | sessions.ToolCallStarted
    | sessions.ToolCallFinished
    | sessions.TurnSuspended
    | sessions.TurnResumed
    | sessions.TurnYielded
    | sessions.TurnUpdated
    | sessions.TurnNudged
    | sessions.TurnPreempted
    | sessions.MessagePosted
    | sessions.DeliberationPlanned
    | sessions.TurnEnded
    | callbacks.CallbackRegistered
    | callbacks.CallbackRearmed
    | callbacks.CallbackResolved
    | callbacks.CallbackCancelled
)

CATALOGUE: dict[type[Event], tuple[str, int]] = {
    agents.AgentCreated: ("agent.created", 1),
    agents.AgentConfigured: ("agent.configured", 1),
    agents.PolicyAdopted: ("policy.adopted", 1),
    agents.AgentStarted: ("agent.started", 1),
    agents.AgentStopped: ("agent.stopped", 1),
    agents.AgentPaused: ("agent.paused", 1),
    agents.AgentResumed: ("agent.resumed", 1),
    agents.AgentDeleted: ("agent.deleted", 1),
    agents.MemoryNoted: ("memory.noted", 1),
    items.StimulusAccepted: ("item.accepted", 1),
    items.ItemPicked: ("item.picked", 1),
    items.ItemCompleted: ("item.completed", 1),
    items.ItemRequeued: ("item.requeued", 1),
    items.ItemDeadLettered: ("item.dead_lettered", 1),
    items.AgentIncomplete: ("agent.incomplete", 1),
    items.ItemCancelled: ("item.cancelled", 1),
    items.ItemMerged: ("item.merged", 1),
    items.ItemDeferred: ("item.deferred", 1),
    items.ItemResurfaced: ("item.resurfaced", 1),
    items.ItemResumed: ("item.resumed", 1),
    items.ItemDropped: ("item.dropped", 1),
    items.ItemExpired: ("item.expired", 1),
    items.ItemReprioritized: ("item.reprioritized", 1),
    items.ItemWeighed: ("item.weighed", 1),
    items.NoticePosted: ("notice.posted", 1),
    triage.TriageBegan: ("triage.began", 1),
    triage.TriageApplied: ("triage.applied", 1),
    people.NotificationPosted: ("notification.posted", 1),
    people.NotificationRead: ("notification.read", 1),
    people.NotificationsAllRead: ("notifications.all_read", 1),
    people.ApprovalRequested: ("approval.requested", 1),
    people.ApprovalAnswered: ("approval.answered", 1),
    people.ApprovalExpired: ("approval.expired", 1),
    people.ApprovalCancelled: ("approval.cancelled", 1),
    heartbeats.HeartbeatEnqueued: ("heartbeat.enqueued", 1),
    heartbeats.HeartbeatSkipped: ("heartbeat.skipped", 1),
    heartbeats.HeartbeatScheduled: ("heartbeat.scheduled", 1),
    heartbeats.DailyReportScheduled: ("daily_report.scheduled", 1),
    heartbeats.DailyReportEnqueued: ("daily_report.enqueued", 1),
    heartbeats.MemoryConsolidationEnqueued: ("memory_consolidation.enqueued", 1),
    heartbeats.MemoryConsolidationSkipped: ("memory_consolidation.skipped", 1),
    flights.FlightAcquired: ("flight.acquired", 1),
    flights.FlightReleased: ("flight.released", 1),
    flights.FlightFenced: ("flight.fenced", 1),
    flights.FocusSuspended: ("focus.suspended", 1),
    flights.FocusRegained: ("focus.regained", 1),
    flights.FocusAnswered: ("focus.answered", 1),
    flights.StopRequested: ("turn.stop_requested", 1),
    sessions.SessionOpened: ("session.opened", 1),
    sessions.SessionArchived: ("session.archived", 1),
    sessions.SessionDeleted: ("session.deleted", 1),
    sessions.TurnStarted: ("turn.started", 1),
    sessions.ModelResponded: ("model.responded", 1),
    sessions.ToolCallStarted: ("tool_call.started", 1),
    sessions.ToolCallFinished: ("tool_call.finished", 1),
    sessions.TurnSuspended: ("turn.suspended", 1),
    sessions.TurnResumed: ("turn.resumed", 1),
    sessions.TurnYielded: ("turn.yielded", 1),
    sessions.TurnUpdated: ("turn.updated", 1),
    sessions.TurnNudged: ("turn.nudged", 1),
    sessions.TurnPreempted: ("turn.preempted", 1),
    sessions.MessagePosted: ("message.posted", 1),
    sessions.DeliberationPlanned: ("deliberation.planned", 1),
    sessions.TurnEnded: ("turn.ended", 1),
    callbacks.CallbackRegistered: ("callback.registered", 1),
    callbacks.CallbackRearmed: ("callback.rearmed", 1),
    callbacks.CallbackResolved: ("callback.resolved", 1),
    callbacks.CallbackCancelled: ("callback.cancelled", 1),
}
