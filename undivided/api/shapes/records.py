"""Decisions, activities and their logs as the API shows them."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from undivided.api.answers import instant, instant_or_none
from undivided.domain.state.session import ActivityRow
from undivided.store.queries.records import DecisionThen


class Decision(Struct, frozen=True, rename="camel", kw_only=True):
    """One decision: the rule that made it, what it saw (`context`) and whom it passed over."""

    id: str
    decision_type: str
    rule: str
    reasoning: str
    mailbox_item_id: str
    turn_id: str | None
    context: dict[str, Any]
    losers: tuple[str, ...]
    policy_version: int
    created_at: str
    position: str


class DecisionPage(Struct, frozen=True, rename="camel", kw_only=True):
    """Some decisions, newest first."""

    items: list[Decision]
    next_cursor: str | None
    position: str


class Activity(Struct, frozen=True, rename="camel", kw_only=True):
    """What was done about one item in one turn; its id is the turn's."""

    id: str
    agent_id: str
    type: str
    label: str
    mailbox_item_id: str
    session_id: str
    turn_id: str
    outcome: str | None
    success: bool | None
    started_at: str
    ended_at: str | None


class ActivityPage(Struct, frozen=True, rename="camel", kw_only=True):
    """Some activities, newest first."""

    items: list[Activity]
    next_cursor: str | None
    position: str


class ActivityStep(Struct, frozen=True, rename="camel", kw_only=True):
    """One step of an activity: the event, and what it says."""

    id: str
    seq: int
    type: str
    content: str
    metadata: Any
    created_at: str
    position: str


class ActivityLog(Struct, frozen=True, rename="camel", kw_only=True):
    """The steps of one activity, in order."""

    activity: Activity
    items: list[ActivityStep]
    next_cursor: str | None
    position: str


def decision_shape(then: DecisionThen) -> Decision:
    """How a decision is shown."""
    row = then.decision
    return Decision(
        id=row.id, decision_type=row.type, rule=row.rule, reasoning=row.reasoning,
        mailbox_item_id=row.item_id, turn_id=row.turn_id, context=row.inputs,
        losers=row.losers, policy_version=row.policy_version,
        created_at=instant(row.made_at), position=then.position,
    )  # fmt: skip


def activity_shape(row: ActivityRow) -> Activity:
    """How an activity is shown."""
    return Activity(
        id=row.id, agent_id=row.agent_id, type=row.type, label=row.summary,
        mailbox_item_id=row.item_id, session_id=row.session_id, turn_id=row.id,
        outcome=row.outcome, success=None if row.outcome is None else row.outcome == "completed",
        started_at=instant(row.started_at), ended_at=instant_or_none(row.ended_at),
    )  # fmt: skip
