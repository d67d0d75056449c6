"""An agent's mind and mailbox as the API shows them."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from msgspec import UNSET, Struct, UnsetType

from undivided.api.answers import instant, instant_or_none
from undivided.api.shapes.agents import AttentionState, attention_state
from undivided.api.shapes.items import times_of
from undivided.domain.merging import summary_with
from undivided.domain.state.agent import AgentRow, Focused, Idle, Suspended, Triage
from undivided.domain.state.item import ItemRow
from undivided.domain.state.session import ActivityRow, DecisionRow
from undivided.domain.stimuli import REGISTRY
from undivided.store.queries.mailbox import Mailbox, Wanted
from undivided.store.queries.mind import Mind


class WaitingItem(Struct, frozen=True, rename="camel", kw_only=True):
    """An item that waits, in one line."""

    id: str
    source_type: str
    category: str
    priority: int
    status: str
    summary: str
    queued_at: str
    attempts: int
    not_before: str | UnsetType = UNSET
    deferred_until: str | UnsetType = UNSET


class DecisionBrief(Struct, frozen=True, rename="camel", kw_only=True):
    """A decision, in short."""

    id: str
    decision_type: str
    rule: str
    reasoning: str
    mailbox_item_id: str
    policy_version: int
    created_at: str


class Focus(Struct, frozen=True, rename="camel", kw_only=True):
    """What the agent is attending to."""

    mailbox_item_id: str
    type: str
    label: str
    summary: str
    started_at: str
    task_id: str | None
    turn_id: str
    session_id: str


class Suspension(Struct, frozen=True, rename="camel", kw_only=True):
    """What a suspended turn waits for, and until when at the latest."""

    kind: str
    turn_id: str
    session_id: str
    since: str
    until: str
    call_id: str | None


class FlightShape(Struct, frozen=True, rename="camel", kw_only=True):
    """Which worker holds the agent, under which epoch."""

    epoch: int
    worker: str


class Memory(Struct, frozen=True, rename="camel", kw_only=True):
    """One entry of working memory."""

    key: str
    content: str
    noted_at: str


class TriageShape(Struct, frozen=True, rename="camel", kw_only=True):
    """What the last triage came to; `aborted` if its plan was discarded."""

    process_item_id: str
    batch_item_ids: tuple[str, ...]
    inline_completed_ids: tuple[str, ...]
    defer_item_ids: tuple[str, ...]
    drop_item_ids: tuple[str, ...]
    reasoning: str
    aborted: bool
    turn_id: str | None
    timestamp: str


class MindShape(Struct, frozen=True, rename="camel", kw_only=True):
    """What an agent attends to, what waits, what it decided lately, what it remembers."""

    attention_state: AttentionState
    status: str
    current_focus: Focus | None
    mailbox_depth: int
    queued_items: list[WaitingItem]
    deferred_items: list[WaitingItem]
    recent_decisions: list[DecisionBrief]
    last_triage: TriageShape | None
    working_memory: list[Memory]
    position: str
    suspension: Suspension | UnsetType = UNSET
    flight: FlightShape | UnsetType = UNSET


class ActivityBrief(Struct, frozen=True, rename="camel", kw_only=True):
    """What was done about an item, in short."""

    id: str
    type: str
    label: str
    outcome: str | None
    success: bool | None
    started_at: str
    ended_at: str | None


class PastItem(Struct, frozen=True, rename="camel", kw_only=True):
    """One item of the timeline: the stimulus, the decisions about it, what was done."""

    id: str
    source_type: str
    category: str
    priority: int
    status: str
    summary: str
    queued_at: str
    started_at: str | None
    completed_at: str | None
    attempts: int
    decisions: list[DecisionBrief]
    activity: ActivityBrief | None
    merged_into: str | UnsetType = UNSET
    deferred_until: str | UnsetType = UNSET


class MailboxShape(Struct, frozen=True, rename="camel", kw_only=True):
    """A mailbox: what waits, best first, and the history, newest first.

    `sourceTypeCounts` is there where `counts=sourceType` asked for it.
    """

    queued: list[WaitingItem]
    queue_depth: int
    history: list[PastItem]
    status_counts: dict[str, int]
    next_cursor: str | None
    position: str
    source_type_counts: dict[str, int] | UnsetType = UNSET


def mind_shape(mind: Mind) -> MindShape:
    """How a mind is shown."""
    agent, flight = mind.agent, mind.flight
    held = flight is not None and flight.held
    return MindShape(
        attention_state=attention_state(agent),
        status=agent.lifecycle,
        current_focus=_focus(mind),
        mailbox_depth=agent.waiting,
        queued_items=[waiting_shape(item) for item in mind.queue],
        deferred_items=[waiting_shape(item) for item in mind.deferred],
        recent_decisions=[decision_brief(decision) for decision in mind.decisions],
        last_triage=_triage(agent.last_triage),
        working_memory=[
            Memory(key=m.key, content=m.content, noted_at=instant(m.noted_at))
            for m in mind.memories
        ],
        position=mind.position or "0-0",
        suspension=_suspension(mind),
        flight=FlightShape(epoch=flight.epoch, worker=flight.worker) if flight and held else UNSET,
    )


def _focus(mind: Mind) -> Focus | None:
    attention = mind.agent.attention
    if isinstance(attention, Idle) or not mind.focus:
        return None
    item = mind.focus[0]
    kind = REGISTRY.get(item.source_type)
    started = times_of(item).started_at or instant(attention.since)
    return Focus(
        mailbox_item_id=item.id, type=item.source_type,
        label=kind.label if kind else item.source_type, summary=summary_with(item),
        started_at=started, task_id=item.payload.task_id, turn_id=attention.turn_id,
        session_id=attention.session_id,
    )  # fmt: skip


def _triage(last: Triage | None) -> TriageShape | None:
    if last is None:
        return None
    return TriageShape(
        process_item_id=last.primary, batch_item_ids=last.batch,
        inline_completed_ids=last.inline, defer_item_ids=last.deferred,
        drop_item_ids=last.dropped, reasoning=last.reasoning, aborted=last.aborted,
        turn_id=last.turn_id, timestamp=instant(last.at),
    )  # fmt: skip


def _suspension(mind: Mind) -> Suspension | UnsetType:
    match mind.agent.attention:
        case Suspended() as waits:
            call_id = getattr(mind.turn.phase, "call_id", None) if mind.turn else None
            return Suspension(
                kind=str(waits.wait.__struct_config__.tag), turn_id=waits.turn_id,
                session_id=waits.session_id, since=instant(waits.since),
                until=instant(waits.until), call_id=call_id,
            )  # fmt: skip
        case Idle() | Focused():
            return UNSET


def waiting_shape(item: ItemRow) -> WaitingItem:
    """How an item that waits is shown."""
    times = times_of(item)
    return WaitingItem(
        id=item.id, source_type=item.source_type, category=item.category,
        priority=item.priority, status=times.status, summary=summary_with(item),
        queued_at=instant(item.queued_at), attempts=item.tries.picked,
        not_before=times.not_before or UNSET,
        deferred_until=times.deferred_until or UNSET,
    )  # fmt: skip


def decision_brief(row: DecisionRow) -> DecisionBrief:
    """How a decision is shown beside what it is about."""
    return DecisionBrief(
        id=row.id, decision_type=row.type, rule=row.rule, reasoning=row.reasoning,
        mailbox_item_id=row.item_id, policy_version=row.policy_version,
        created_at=instant(row.made_at),
    )  # fmt: skip


def activity_brief(row: ActivityRow) -> ActivityBrief:
    """How an activity is shown beside its item."""
    return ActivityBrief(
        id=row.id, type=row.type, label=row.summary, outcome=row.outcome,
        success=None if row.outcome is None else row.outcome == "completed",
        started_at=instant(row.started_at), ended_at=instant_or_none(row.ended_at),
    )  # fmt: skip


def mailbox_shape(box: Mailbox, wanted: Wanted, next_cursor: str | None) -> MailboxShape:
    """How a mailbox is shown."""
    decided: dict[str, list[DecisionBrief]] = defaultdict(list)
    for row in box.decisions:
        decided[row.item_id].append(decision_brief(row))
    done = _Done.of(box.activities)
    return MailboxShape(
        queued=[waiting_shape(item) for item in box.queue],
        queue_depth=box.agent.waiting,
        history=[_past(item, decided, done) for item in box.history[: wanted.limit]],
        status_counts=status_counts(box.agent, box.lost),
        next_cursor=next_cursor,
        position=box.position or "0-0",
        source_type_counts=UNSET if box.by_type is None else box.by_type,
    )


class _Done(Struct):
    """Activities by their turns, and the last about each item."""

    turns: dict[str, ActivityBrief]
    items: dict[str, ActivityBrief]

    @classmethod
    def of(cls, rows: tuple[ActivityRow, ...]) -> _Done:
        """Sort activities, the oldest first."""
        briefs = [(row, activity_brief(row)) for row in rows]
        return cls(
            {row.id: brief for row, brief in briefs}, {row.item_id: brief for row, brief in briefs}
        )

    def about(self, item_id: str, turn_id: str | None) -> ActivityBrief | None:
        """What was done about an item: in a batch that is what was done about its first."""
        return self.turns.get(turn_id or "") or self.items.get(item_id)


def _past(item: ItemRow, decided: dict[str, Any], done: _Done) -> PastItem:
    times = times_of(item)
    activity = done.about(item.id, times.turn_id)
    started = times.started_at
    if started is None and times.completed_at is not None and activity is not None:
        started = activity.started_at
    return PastItem(
        id=item.id, source_type=item.source_type, category=item.category,
        priority=item.priority, status=times.status, summary=summary_with(item),
        queued_at=instant(item.queued_at), started_at=started,
        completed_at=times.completed_at, attempts=item.tries.picked,
        decisions=decided.get(item.id, []), activity=activity,
        merged_into=times.merged_into or UNSET, deferred_until=times.deferred_until or UNSET,
    )  # fmt: skip


def status_counts(agent: AgentRow, lost: dict[str, int]) -> dict[str, int]:
    """How many items are in each status: all that were accepted are somewhere."""
    processing = 0 if isinstance(agent.attention, Idle) else len(agent.attention.item_ids)
    counts = {
        "queued": agent.waiting, "processing": processing, "deferred": agent.deferred,
        "merged": agent.merged, "dropped": agent.dropped, **lost,
    }  # fmt: skip
    counts["completed"] = agent.next_seq - 1 - sum(counts.values())
    return {status: number for status, number in counts.items() if number}
