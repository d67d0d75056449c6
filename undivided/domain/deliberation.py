"""Carrying a plan out: what becomes of every item that a deliberation considered.

A plan was made on what waited then; it is applied to what waits now. What has gone meanwhile is
passed over, what is protected waits on, and the item that the agent turns to is never also
discarded. So each item ends in one place: over, put off, waiting, or in the next turn.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from undivided.domain.agents import note
from undivided.domain.decisions import Decision, DecisionType
from undivided.domain.events.agents import MemoryNoted
from undivided.domain.events.catalogue import Event
from undivided.domain.events.items import ItemCompleted, ItemDeferred, ItemDropped
from undivided.domain.events.triage import TriageApplied
from undivided.domain.ids import digest
from undivided.domain.outcomes import Completed
from undivided.domain.planning import Considered
from undivided.domain.plans import MemoryUpdate, Plan
from undivided.domain.protection import is_begun, is_kept
from undivided.domain.state.agent import AgentRow
from undivided.domain.state.item import ItemRow

LOSERS_NAMED = 10
INLINE = "dealt with during deliberation"
WITHOUT_PLAN = "without_plan"
"""The rule of a triage that led to nothing: order decides."""

TriagedBy = Literal["deliberation", "mini_triage"]
_NOTED_UNDER: dict[TriagedBy, str] = {
    "deliberation": "deliberation",
    "mini_triage": "triage-decision",
}


class Triaging(Struct, frozen=True):
    """The triage that ends: of which agent, in which turn and flight, about what.

    `name` is one that no other triage has, such as its turn's: its decisions are called after it.
    `held` are the keys of working memory that there are, oldest first.
    """

    name: str
    agent: AgentRow
    turn_id: str | None
    epoch: int
    about: Considered
    held: tuple[str, ...] = ()
    by: TriagedBy = "deliberation"


class Applied(Struct, frozen=True):
    """What is recorded of it, for the agent's stream, and what the agent turns to.

    `inline` are the items that the deliberation's own turn ends with. Without `primary` nothing
    of what was considered waits any more, or the plan was discarded: the best of the queue is
    next. `longterm` is what the agent wants to know from here on.
    """

    events: tuple[Event, ...]
    decision: Decision
    primary: ItemRow | None
    siblings: tuple[ItemRow, ...] = ()
    batch_context: str = ""
    inline: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    longterm: tuple[MemoryUpdate, ...] = ()


def apply(triaging: Triaging, plan: Plan | None) -> Applied:
    """Carry `plan` out; without one the agent turns to the head."""
    if plan is None:
        return _unplanned(triaging)
    primary, siblings = _chosen(triaging.about, plan)
    taken = [item.id for item in (primary, *siblings) if item is not None]
    inline = _touched(triaging, plan.inline, taken)
    defer = _touched(triaging, plan.defer, [*taken, *inline], begun_too=True)
    drop = _touched(triaging, plan.drop, [*taken, *inline, *defer])
    applied = TriageApplied(
        agent_id=triaging.agent.id, turn_id=triaging.turn_id, epoch=triaging.epoch,
        decision=_triage(triaging, triaging.by, plan.reasoning or "as planned", tuple(taken)),
        primary=primary.id if primary else triaging.about.ids[0],
        batch=tuple(item.id for item in siblings), inline=inline, deferred=defer, dropped=drop,
        reasoning=plan.reasoning,
    )  # fmt: skip
    events: tuple[Event, ...] = (
        *_completions(triaging, inline),
        *(_deferral(triaging, item_id, plan.reasoning) for item_id in defer),
        *(_discard(triaging, item_id, plan.reasoning) for item_id in drop),
        *_noted(triaging, plan, applied),
        applied,
    )
    longterm = tuple(one for one in plan.memory_updates if one.type == "longterm")
    made = applied.decision
    return Applied(events, made, primary, siblings, plan.batch_context, inline, drop, longterm)


def abort(triaging: Triaging, plan: Plan | None, why: str) -> Applied:
    """Discard the plan, if there is one: only what is done already stays done."""
    inline = _touched(triaging, plan.inline, plan.process) if plan else ()
    applied = TriageApplied(
        agent_id=triaging.agent.id, turn_id=triaging.turn_id, epoch=triaging.epoch,
        decision=_triage(triaging, "aborted", why), primary=triaging.about.ids[0],
        inline=inline, reasoning=why, aborted=True,
    )  # fmt: skip
    events: tuple[Event, ...] = (*_completions(triaging, inline), applied)
    return Applied(events, applied.decision, None, inline=inline)


def _unplanned(triaging: Triaging) -> Applied:
    about, why = triaging.about, "there is no plan: by priority and age"
    applied = TriageApplied(
        agent_id=triaging.agent.id, turn_id=triaging.turn_id, epoch=triaging.epoch,
        decision=_triage(triaging, WITHOUT_PLAN, why, about.ids[:1]), primary=about.ids[0],
        reasoning=why,
    )  # fmt: skip
    head = about.rows[about.ids[0]] if about.waits(about.ids[0]) else None
    return Applied((applied,), applied.decision, head)


def _chosen(about: Considered, plan: Plan) -> tuple[ItemRow | None, tuple[ItemRow, ...]]:
    """What the agent turns to, and what with it; the head where the plan's choice has gone.

    A turn that was set aside goes on alone.
    """
    wanted = [about.rows[one] for one in dict.fromkeys(plan.process) if about.waits(one)]
    head = about.ids[0]
    if not wanted or wanted[0].id != plan.process[0]:
        if not about.waits(head):
            return (wanted[0] if wanted else None), ()
        return about.rows[head], ()
    first, *rest = wanted
    if is_begun(first):
        return first, ()
    return first, tuple(item for item in rest if not (is_kept(item) or is_begun(item)))


def _touched(
    triaging: Triaging, ids: tuple[str, ...], taken: list[str] | tuple[str, ...],
    begun_too: bool = False,
) -> tuple[str, ...]:  # fmt: skip
    """Those of `ids` that may be taken out of the queue: they wait and nothing protects them."""
    about = triaging.about
    return tuple(
        one
        for one in dict.fromkeys(ids)
        if one not in taken
        and about.waits(one)
        and not is_kept(about.rows[one])
        and (begun_too or not is_begun(about.rows[one]))
    )


def _completions(triaging: Triaging, inline: tuple[str, ...]) -> tuple[ItemCompleted, ...]:
    if triaging.turn_id is None:
        return ()
    return tuple(
        ItemCompleted(
            agent_id=triaging.agent.id, item_id=one, turn_id=triaging.turn_id,
            epoch=triaging.epoch, outcome=Completed(INLINE),
            decision=_decision(triaging, "complete", (one, INLINE)),
        )
        for one in inline
    )  # fmt: skip


def _deferral(triaging: Triaging, item_id: str, why: str) -> ItemDeferred:
    return ItemDeferred(
        agent_id=triaging.agent.id, item_id=item_id, epoch=triaging.epoch, by="deliberation",
        decision=_decision(triaging, "defer", (item_id, why or "put off as planned")),
    )  # fmt: skip


def _discard(triaging: Triaging, item_id: str, why: str) -> ItemDropped:
    return ItemDropped(
        agent_id=triaging.agent.id, item_id=item_id, reason=triaging.by,
        decision=_decision(triaging, "drop", (item_id, why or "discarded as planned")),
    )  # fmt: skip


def _noted(triaging: Triaging, plan: Plan, applied: TriageApplied) -> tuple[MemoryNoted, ...]:
    """The plan's own notes in their order, and what the agent knows of its situation."""
    entries = [(one.key, one.content) for one in plan.memory_updates if one.type == "working"]
    entries.append((_NOTED_UNDER[triaging.by], plan.awareness or _summary(applied)))
    keys, told = triaging.held, list[MemoryNoted]()
    for entry in entries:
        event = note(triaging.agent, keys, entry, triaging.turn_id)
        keys = (*(k for k in keys if k not in (entry[0], *event.evicted)), entry[0])
        told.append(event)
    return tuple(told)


def _summary(applied: TriageApplied) -> str:
    parts = (
        ("turned to", (applied.primary, *applied.batch)),
        ("dealt with", applied.inline),
        ("put off", applied.deferred),
        ("discarded", applied.dropped),
    )
    lines = [f"{what} {', '.join(ids)}" for what, ids in parts if ids]
    return "; ".join([*lines, applied.reasoning] if applied.reasoning else lines)


def _triage(triaging: Triaging, rule: str, why: str, taken: tuple[str, ...] = ()) -> Decision:
    about = triaging.about
    passed_over = tuple(one for one in about.waiting if one not in taken)
    return Decision(
        _name(triaging, "triage"), "triage", rule, f"{triaging.by}: {why}",
        {"considered": len(about.ids), "waiting": len(about.waiting)},
        triaging.agent.policy_version, passed_over[:LOSERS_NAMED],
    )  # fmt: skip


def _decision(triaging: Triaging, kind: DecisionType, about: tuple[str, str]) -> Decision:
    item_id, why = about
    item = triaging.about.rows[item_id]
    return Decision(
        _name(triaging, item_id), kind, triaging.by, why,
        {"sourceType": item.source_type, "priority": item.priority, "merged": item.merged},
        triaging.agent.policy_version,
    )  # fmt: skip


def _name(triaging: Triaging, about: str) -> str:
    """One triage decides once about each item, so that its decisions need no fresh names."""
    return f"dec_{digest((triaging.name, about))}"
