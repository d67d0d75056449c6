"""What an agent may do to its own mailbox: look, put off, discard, reprioritise.

Each takes effect at once and answers JSON. What people write and what starts a task is protected;
an item that a turn is at work on is no longer the mailbox's to give away.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from msgspec import Struct

from undivided.domain.decisions import Decision, DecisionType
from undivided.domain.events.catalogue import Event
from undivided.domain.events.items import ItemDeferred, ItemDropped, ItemReprioritized
from undivided.domain.merging import summary_with
from undivided.domain.protection import is_begun, is_protected
from undivided.domain.state.agent import AgentRow, Idle
from undivided.domain.state.item import TERMINAL, ItemRow, Processing, Queued
from undivided.domain.state.session import DecisionRow
from undivided.domain.state.view import AgentView
from undivided.domain.stimuli import REGISTRY
from undivided.domain.tooling import Act

REASONING_CUT = 200
DECISIONS_TOLD = 5


class CheckMailbox(Act, frozen=True):
    """Look at what waits."""


class DeferItem(Act, frozen=True):
    """Put an item off, for `wait_s` seconds or until the agent is idle."""

    item_id: str
    reason: str
    wait_s: float | None = None


class DropItem(Act, frozen=True):
    """Discard an item."""

    item_id: str
    reason: str


class PrioritizeItem(Act, frozen=True):
    """Give an item another priority; `priority` is whatever the model wrote."""

    item_id: str
    priority: Any


class Owned(Struct, frozen=True):
    """Whose mailbox it is, in which flight, and a fresh name for a decision."""

    agent: AgentRow
    epoch: int
    decision_id: str

    def has(self, item: ItemRow | None) -> bool:
        """Whether the item is one of this agent's."""
        return item is not None and item.agent_id == self.agent.id


class Told(Struct, frozen=True):
    """What the model reads, and what is recorded; `failed` if nothing could be done."""

    content: str
    events: tuple[Event, ...] = ()
    failed: bool = False


def checked(
    view: AgentView, waiting: tuple[ItemRow, ...], decisions: tuple[DecisionRow, ...]
) -> str:
    """What waits, best first, what is in focus, and what was decided lately, oldest first."""
    agent = view.agent
    told = {
        "status": "ok",
        "queueDepth": agent.waiting if agent else len(waiting),
        "currentFocus": _focus(view),
        "items": [
            {
                "id": item.id, "type": item.source_type, "priority": item.priority,
                "summary": summary_with(item), "ageMs": _elapsed_ms(view, item.queued_at),
            }
            for item in waiting
        ],
        "recentDecisions": [
            {
                "type": one.type, "rule": one.rule, "itemId": one.item_id,
                "reasoning": one.reasoning[:REASONING_CUT],
            }
            for one in decisions[-DECISIONS_TOLD:]
        ],
    }  # fmt: skip
    return _json(told)


def _focus(view: AgentView) -> dict[str, Any] | None:
    if view.agent is None or isinstance(view.agent.attention, Idle) or not view.focus:
        return None
    item = view.focus[0]
    kind, phase = REGISTRY.get(item.source_type), item.phase
    since = phase.started_at if isinstance(phase, Processing) else view.agent.attention.since
    label = kind.label if kind else item.source_type
    return {"type": item.source_type, "label": label, "elapsedMs": _elapsed_ms(view, since)}


def _elapsed_ms(view: AgentView, since: datetime) -> int:
    return max(0, round((view.now - since).total_seconds() * 1000))


def deferred(owned: Owned, item: ItemRow | None, wanted: DeferItem) -> Told:
    """Put a waiting item off; it comes back in time, or when the agent is idle."""
    why_not = _untouchable(owned, item, wanted.item_id, "deferred")
    if why_not:
        return _error(why_not)
    event = ItemDeferred(
        agent_id=owned.agent.id, item_id=wanted.item_id, epoch=owned.epoch, by="agent",
        wait_s=wanted.wait_s or None,
        decision=_decision(owned, "defer", wanted.reason, {"waitS": wanted.wait_s or 0.0}),
    )  # fmt: skip
    return Told(_json({"status": "deferred", "item_id": wanted.item_id}), (event,))


def dropped(owned: Owned, item: ItemRow | None, wanted: DropItem) -> Told:
    """Discard a waiting item; one that is over, or was never here, needs no more."""
    if item is None or not owned.has(item) or _is_over(item):
        note = "it is not in the mailbox any more; there is nothing to do"
        return Told(_json({
            "status": "already_resolved", "item_id": wanted.item_id, "note": note,
        }))  # fmt: skip
    why_not = _untouchable(owned, item, wanted.item_id, "dropped")
    if not why_not and is_begun(item):
        why_not = f"item {item.id} cannot be dropped: work on it has begun and was set aside"
    if why_not:
        return _error(why_not)
    event = ItemDropped(
        agent_id=owned.agent.id, item_id=item.id, reason=wanted.reason,
        decision=_decision(owned, "drop", wanted.reason, {"priority": item.priority}),
    )  # fmt: skip
    return Told(_json({"status": "dropped", "item_id": item.id}), (event,))


def prioritized(owned: Owned, item: ItemRow | None, wanted: PrioritizeItem) -> Told:
    """Give a waiting item another priority; a fraction is rounded, halves upwards."""
    number = wanted.priority
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number <= 4:
        return _error(f"priority must be a number between 0 and 4, got {number!r:.40}")
    why_not = _untouchable(owned, item, wanted.item_id, "reprioritized")
    if why_not:
        return _error(why_not)
    priority = int(number + 0.5)
    event = ItemReprioritized(
        agent_id=owned.agent.id, item_id=wanted.item_id, priority=priority,
        by=f"agent:{owned.agent.id}",
    )  # fmt: skip
    return Told(_json({
        "status": "reprioritized", "item_id": wanted.item_id, "priority": priority,
    }), (event,))  # fmt: skip


def _is_over(item: ItemRow) -> bool:
    return item.phase.__struct_config__.tag in TERMINAL


def _untouchable(owned: Owned, item: ItemRow | None, item_id: str, what: str) -> str | None:
    """Why this cannot be done to an item; None if it can."""
    if item is None or not owned.has(item):
        return f"there is no item {item_id[:128]!r} in the mailbox"
    if is_protected(item):
        protected = ", ".join(kind.name for kind in REGISTRY.values() if kind.protected)
        return (
            f"item {item.id} is protected and cannot be {what}: {protected} and items that start "
            f"a task are; it is a {item.source_type}"
        )
    if not isinstance(item.phase, Queued):
        status = item.phase.__struct_config__.tag
        return f"item {item.id} cannot be {what}: it is {status}, not queued"
    return None


def _decision(owned: Owned, kind: DecisionType, reason: str, inputs: dict[str, float]) -> Decision:
    return Decision(
        owned.decision_id, kind, "agent_tool", reason,
        {**inputs, "waiting": owned.agent.waiting}, owned.agent.policy_version,
    )  # fmt: skip


def _error(why: str) -> Told:
    return Told(_json({"status": "error", "error": why}), failed=True)


def _json(told: dict[str, Any]) -> str:
    return json.dumps(told, ensure_ascii=False)
