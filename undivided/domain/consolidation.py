"""Putting a mailbox in order before something is picked.

What is about the same task, requirement or channel becomes one item, whatever its types; what has
lost its point goes; what nobody got to in days is given up, and people are told. Each rule
answers events; whoever applies them does so in one append and looks at the mailbox afresh.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

from msgspec import Struct

from undivided.domain.decisions import Decision
from undivided.domain.endings import OWNER
from undivided.domain.events.items import ItemDropped, ItemExpired, ItemMerged, NoticePosted
from undivided.domain.ids import digest
from undivided.domain.mailbox import summary_of
from undivided.domain.merging import MARKS, STANDALONE, Survivor, marks_brought
from undivided.domain.state.agent import AgentRow
from undivided.domain.state.item import ItemRow, Queued
from undivided.domain.stimuli import REGISTRY, TASK_STATUS_UPDATE

ACTION_REQUIRED = MARKS[0]


class GivenUp(Struct, frozen=True):
    """What an item that nobody got to in time leads to: its end, and word of it."""

    expired: ItemExpired
    notice: NoticePosted


def consolidate(
    agent: AgentRow, queue: tuple[ItemRow, ...], now: datetime
) -> tuple[ItemMerged, ...]:
    """Join what is about the same; in no order of types, and never what must stand alone.

    Items of one task first; then those of one requirement that name no task; then the messages
    of one channel that name neither.
    """
    told: list[ItemMerged] = []
    for rule, about in _PASSES:
        groups: dict[tuple[str | None, str, str], list[ItemRow]] = defaultdict(list)
        for item in sorted(queue, key=lambda one: (one.priority, one.seq)):
            subject = about(item)
            if subject and _joins(item, now):
                groups[item.session_id, item.delivery, subject].append(item)
        for group in groups.values():
            told += _as_one(agent, rule, group)
    return tuple(told)


def stale(agent: AgentRow, item: ItemRow, now: datetime) -> ItemDropped | None:
    """Discard a waiting item by its age, if its type loses its point with time."""
    kind = REGISTRY.get(item.source_type)
    limit_s = agent.policy.stale_after_s
    if kind is None or not kind.ages or _stands_alone(item) or not _older(item, now, limit_s):
        return None
    why = f"{kind.label} has waited for more than {limit_s:g} s and has lost its point"
    return _dropped(agent, item, ("stale", "stale_info"), why)


def purge(agent: AgentRow, queue: tuple[ItemRow, ...], now: datetime) -> tuple[ItemDropped, ...]:
    """Discard every item that has lost its point."""
    found = (stale(agent, item, now) for item in queue)
    return tuple(event for event in found if event is not None)


def is_expired(agent: AgentRow, item: ItemRow, now: datetime) -> bool:
    """Whether an item has waited beyond any use, and no turn about it has begun."""
    return _older(item, now, agent.policy.queued_ttl_s)


def expired(
    agent: AgentRow, item: ItemRow, now: datetime, names: tuple[str, str]
) -> GivenUp | None:
    """Give up an item that has waited beyond any use; `names` are a decision's and a notice's."""
    ttl_s = agent.policy.queued_ttl_s
    if not is_expired(agent, item, now):
        return None
    waited = f"it has waited for more than {ttl_s:g} s"
    return GivenUp(
        ItemExpired(
            agent_id=agent.id, item_id=item.id, notice_id=names[1],
            decision=Decision(
                names[0], "dead_letter", "queued_ttl", waited,
                {"ttlS": ttl_s, "priority": item.priority}, agent.policy_version,
            ),
        ),
        NoticePosted(
            notice_id=names[1], user_id=OWNER, agent_id=agent.id, item_id=item.id,
            kind="dead_letter",
            text=f'{agent.name} never got to "{summary_of(item.payload)[:120]}": {waited}',
        ),
    )  # fmt: skip


def drop_status_updates(
    agent: AgentRow, queue: tuple[ItemRow, ...], task_id: str
) -> tuple[ItemDropped, ...]:
    """Discard the news of a task that is begun anew; what starts it stays."""
    overtaken = (
        item
        for item in queue
        if item.source_type == TASK_STATUS_UPDATE
        and item.payload.task_id == task_id
        and _waits_untouched(item)
        and not _stands_alone(item)
    )
    why = f"task {task_id} is begun anew: what was told of it before is out of date"
    return tuple(_dropped(agent, item, ("superseded", "task_retried"), why) for item in overtaken)


def _by_task(item: ItemRow) -> str | None:
    return item.payload.task_id


def _by_requirement(item: ItemRow) -> str | None:
    return None if item.payload.task_id else item.payload.requirement_id


def _by_channel(item: ItemRow) -> str | None:
    channel = item.payload.extra.get("channelKey")
    if item.payload.task_id or item.payload.requirement_id or not isinstance(channel, str):
        return None
    return channel if REGISTRY[item.source_type].is_channel_message else None


_PASSES: tuple[tuple[str, Callable[[ItemRow], str | None]], ...] = (
    ("consolidate_task", _by_task),
    ("consolidate_requirement", _by_requirement),
    ("consolidate_channel", _by_channel),
)


def _as_one(agent: AgentRow, rule: str, group: list[ItemRow]) -> Iterator[ItemMerged]:
    """Everything of a group joins the one of it that asks for most."""
    chosen = min(group, key=_demand)
    survivor = Survivor.of(chosen)
    for item in group:
        items = item.merged + 1
        characters = len(item.payload.content) + item.merged_chars
        if item.id == chosen.id or not survivor.has_room(items, characters):
            continue
        merged = ItemMerged(
            agent_id=agent.id, item_id=item.id, into=chosen.id,
            priority=min(survivor.priority, item.priority),
            marks=marks_brought(survivor.payload, item.payload),
            requirement_id=None
            if survivor.payload.requirement_id else item.payload.requirement_id,
            items=items, characters=characters,
            decision=Decision(
                f"dec_{digest((item.id, 'merge'))}", "merge", rule,
                f"{REGISTRY[item.source_type].label} joins {chosen.id}, which is about the same",
                {
                    "priority": item.priority, "survivorPriority": survivor.priority,
                    "survivorType": chosen.source_type, "characters": characters,
                },
                agent.policy_version,
            ),
        )  # fmt: skip
        survivor = survivor.after(merged)
        yield merged


def _demand(item: ItemRow) -> tuple[bool, bool, int, int]:
    """What asks for most comes first, so that no mere news swallows what needs an answer."""
    kind = REGISTRY[item.source_type]
    action = bool(item.payload.extra.get(ACTION_REQUIRED))
    thought_about = kind.invokes_model or kind.is_comment or action
    return not thought_about, not action, item.priority, item.seq


def _joins(item: ItemRow, now: datetime) -> bool:
    """Whether an item may join others or be joined, as it waits now."""
    kind, phase = REGISTRY.get(item.source_type), item.phase
    if kind is None or kind.protected or kind.single_owner or _stands_alone(item):
        return False
    if not isinstance(phase, Queued) or phase.turn_id is not None:
        return False
    return phase.not_before is None or phase.not_before <= now or phase.coalescing


def _stands_alone(item: ItemRow) -> bool:
    return bool(item.payload.extra.get(STANDALONE))


def _waits_untouched(item: ItemRow) -> bool:
    return isinstance(item.phase, Queued) and item.phase.turn_id is None


def _older(item: ItemRow, now: datetime, than_s: float) -> bool:
    return _waits_untouched(item) and now - item.waits_since > timedelta(seconds=than_s)


def _dropped(agent: AgentRow, item: ItemRow, cause: tuple[str, str], why: str) -> ItemDropped:
    reason, rule = cause
    return ItemDropped(
        agent_id=agent.id, item_id=item.id, reason=reason,
        decision=Decision(
            f"dec_{digest((item.id, 'drop'))}", "drop", rule, why,
            {"priority": item.priority, "merged": item.merged}, agent.policy_version,
        ),
    )  # fmt: skip
