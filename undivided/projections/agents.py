"""The agent's row: configuration, attention and mailbox counters."""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec.structs import replace

from undivided.domain.deliberation import WITHOUT_PLAN
from undivided.domain.events import agents as a
from undivided.domain.events import flights as f
from undivided.domain.events import items as i
from undivided.domain.events import triage as t
from undivided.domain.recorded import Recorded
from undivided.domain.state.agent import (
    AgentRow,
    Focused,
    Idle,
    Lifecycle,
    Suspended,
    Triage,
)

TOUCHED = (
    a.AgentCreated | a.AgentConfigured | a.PolicyAdopted | a.AgentStarted | a.AgentStopped
    | a.AgentPaused | a.AgentResumed | a.AgentDeleted | a.MemoryNoted | a.KnowledgeSaved
    | i.StimulusAccepted | i.ItemPicked
    | i.ItemCompleted | i.ItemRequeued | i.ItemDeadLettered | i.ItemCancelled
    | i.ItemMerged | i.ItemDeferred | i.ItemResurfaced | i.ItemResumed | i.ItemDropped
    | i.ItemExpired
    | f.FocusAnswered | f.FocusSuspended | f.FocusRegained | f.StopRequested
    | t.TriageBegan | t.TriageApplied
)  # fmt: skip


REASONING_KEPT = 500
"""Characters of a triage's reasoning that stay in the row, which every decision reads."""


def keys(recorded: Recorded) -> tuple[str, ...]:
    """The agent, for every event that changes its row."""
    event = recorded.event
    return (event.agent_id,) if isinstance(event, TOUCHED) else ()


def reduce(row: AgentRow | None, recorded: Recorded) -> AgentRow | None:
    """The agent's row after `recorded`."""
    event, at = recorded.event, recorded.at
    if isinstance(event, a.AgentCreated):
        return _created(event, recorded)
    if row is None:
        return None
    match event:
        case i.StimulusAccepted():
            writer = event.sender.id if event.sender.role == "user" else None
            return replace(
                row, waiting=row.waiting + 1, next_seq=event.seq + 1, changed_at=at,
                user_id=writer or row.user_id,
            )  # fmt: skip
        case i.ItemMerged():
            return replace(row, waiting=row.waiting - 1, merged=row.merged + 1, changed_at=at)
        case i.ItemDropped():
            return replace(row, waiting=row.waiting - 1, dropped=row.dropped + 1, changed_at=at)
        case i.ItemExpired():
            return replace(row, waiting=row.waiting - 1, changed_at=at)
        case i.ItemResurfaced():
            return replace(row, waiting=row.waiting + 1, deferred=row.deferred - 1, changed_at=at)
        case i.ItemCompleted() if _deliberates(row, event.turn_id):
            return replace(row, waiting=row.waiting - 1, changed_at=at)
        case t.TriageBegan() | t.TriageApplied():
            return _triaging(row, event, at)
        case i.ItemCancelled() if not _in_focus(row, event.item_id):
            return replace(row, waiting=row.waiting - 1, changed_at=at)
        case _:
            return _attending(row, recorded)


def _in_focus(row: AgentRow, item_id: str) -> bool:
    return not isinstance(row.attention, Idle) and item_id in row.attention.item_ids


def _without(row: AgentRow, item_id: str, at: datetime) -> AgentRow:
    """The agent without one of the items in focus; with the last of them the turn is over."""
    focus = row.attention
    others = () if isinstance(focus, Idle) else tuple(i for i in focus.item_ids if i != item_id)
    if isinstance(focus, Idle) or not others:
        return replace(row, attention=Idle(at), changed_at=at)
    return replace(row, attention=replace(focus, item_ids=others), changed_at=at)


def _attending(row: AgentRow, recorded: Recorded) -> AgentRow:
    event, at = recorded.event, recorded.at
    focus = row.attention
    match event:
        case i.ItemPicked() | i.ItemResumed():
            together: tuple[str, ...] = ()
            if isinstance(focus, Focused) and focus.turn_id == event.turn_id:
                together = focus.item_ids
            focused = Focused(
                event.turn_id, event.session_id, (*together, event.item_id), event.epoch, at
            )
            return replace(row, attention=focused, waiting=row.waiting - 1, changed_at=at)
        case i.ItemDeferred() if event.turn_id is not None:
            return replace(row, attention=Idle(at), deferred=row.deferred + 1, changed_at=at)
        case i.ItemDeferred():
            return replace(row, waiting=row.waiting - 1, deferred=row.deferred + 1, changed_at=at)
        case f.FocusAnswered() if isinstance(focus, Suspended) and focus.turn_id == event.turn_id:
            return replace(row, attention=replace(focus, answer=event.content), changed_at=at)
        case i.ItemCompleted() | i.ItemDeadLettered() | i.ItemCancelled():
            return _without(row, event.item_id, at)
        case i.ItemRequeued():
            return replace(row, attention=Idle(at), waiting=row.waiting + 1, changed_at=at)
        case f.FocusSuspended() if not isinstance(focus, Idle):
            until = at + timedelta(seconds=event.wait_s)
            waiting = Suspended(
                focus.turn_id, focus.session_id, focus.item_ids, event.wait, at, until,
                focus.stop_by,
            )  # fmt: skip
            return replace(row, attention=waiting, changed_at=at)
        case f.FocusRegained() if isinstance(focus, Focused):
            return replace(
                row, attention=replace(focus, epoch=event.epoch, since=at), changed_at=at
            )
        case f.FocusRegained() if isinstance(focus, Suspended):
            focused = Focused(
                focus.turn_id, focus.session_id, focus.item_ids, event.epoch, at, focus.stop_by
            )
            return replace(row, attention=focused, changed_at=at)
        case f.StopRequested() if not isinstance(focus, Idle) and focus.turn_id == event.turn_id:
            return replace(row, attention=replace(focus, stop_by=event.by), changed_at=at)
        case _:
            return _commanded(row, recorded)


def _deliberates(row: AgentRow, turn_id: str | None) -> bool:
    focus = row.attention
    return isinstance(focus, Focused) and focus.mode == "deliberating" and focus.turn_id == turn_id


def _triaging(row: AgentRow, event: t.TriageBegan | t.TriageApplied, at: datetime) -> AgentRow:
    if isinstance(event, t.TriageBegan):
        focused = Focused(
            event.turn_id, event.session_id, (), event.epoch, at, mode="deliberating",
            considered=event.item_ids,
        )  # fmt: skip
        return replace(row, attention=focused, changed_at=at)
    triage = Triage(
        turn_id=event.turn_id, primary=event.primary, batch=event.batch, inline=event.inline,
        deferred=event.deferred, dropped=event.dropped,
        reasoning=event.reasoning[:REASONING_KEPT], aborted=event.aborted, at=at,
        undecided_below=row.next_seq if event.decision.rule == WITHOUT_PLAN else 0,
    )  # fmt: skip
    over = _deliberates(row, event.turn_id)
    return replace(
        row, attention=Idle(at) if over else row.attention, last_triage=triage, changed_at=at
    )


def _commanded(row: AgentRow, recorded: Recorded) -> AgentRow:
    event, at = recorded.event, recorded.at
    match event:
        case a.MemoryNoted() | a.KnowledgeSaved():
            return row if row.remembers else replace(row, remembers=True)
        case a.AgentConfigured():
            return replace(
                row, name=event.name, model=event.model, instructions=event.instructions,
                tools=event.tools, heartbeat_interval_s=event.heartbeat_interval_s, changed_at=at,
            )  # fmt: skip
        case a.PolicyAdopted():
            return replace(row, policy=event.policy, policy_version=event.version, changed_at=at)
        case a.AgentStarted() | a.AgentResumed():
            return _living(row, "started", recorded)
        case a.AgentPaused():
            return _living(row, "paused", recorded)
        case a.AgentStopped():
            return _living(row, "stopped", recorded)
        case a.AgentDeleted():
            return _living(row, "deleted", recorded)
        case _:
            return row


def _created(event: a.AgentCreated, recorded: Recorded) -> AgentRow:
    return AgentRow(
        id=event.agent_id, name=event.name, definition=event.definition, model=event.model,
        instructions=event.instructions, tools=event.tools, policy=event.policy,
        policy_version=1, team_id=event.team_id,
        heartbeat_interval_s=event.heartbeat_interval_s, lifecycle="started",
        attention=Idle(recorded.at), waiting=0, next_seq=1,
        created_at=recorded.at, changed_at=recorded.at,
    )  # fmt: skip


def _living(row: AgentRow, lifecycle: Lifecycle, recorded: Recorded) -> AgentRow:
    return replace(row, lifecycle=lifecycle, changed_at=recorded.at)
