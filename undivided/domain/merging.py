"""Merging: several stimuli about the same thing become one item, and are handled once.

What joins keeps its own row and its own words; the item that it joins only counts it, and takes
over the better priority and whatever marks it lacks. So accepting the thousandth comment costs
what the tenth does, and nothing that somebody said is ever rewritten. Whoever shows or prompts
the item puts the words together (`composed`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from undivided.domain.decisions import Decision
from undivided.domain.events.items import ItemMerged, Payload, StimulusAccepted
from undivided.domain.ids import digest
from undivided.domain.state.item import ItemRow
from undivided.domain.stimuli import REGISTRY

RULE = "\n\n---\n\n"
CHANNEL_RULE = "\n\n---\n"
JOINED_CHARACTERS = 1_000_000
"""Characters that join one item at most; what comes then stands for itself."""
MARKS = ("actionRequired", "directMention")
"""What an item has from then on if anything that joined it had it."""
STANDALONE = "triggerExecution"
"""The mark of an item that starts a task: it never merges."""
UNKNOWN = "unknown"


def merge_key(source_type: str, payload: Payload) -> str | None:
    """What a stimulus can join by, or be joined by; None where it stands for itself."""
    kind = REGISTRY.get(source_type)
    if kind is None or kind.merges_by is None or payload.extra.get(STANDALONE):
        return None
    match kind.merges_by:
        case "taskId":
            value: Any = payload.task_id
        case "requirementId":
            value = payload.requirement_id
        case "channelKey":
            value = payload.extra.get("channelKey")
    return f"{source_type}/{value}" if isinstance(value, str) and value else None


class Survivor(Struct, frozen=True):
    """An item that waits and can be joined, as far as joining needs to know."""

    id: str
    priority: int
    payload: Payload
    characters: int

    @classmethod
    def of(cls, item: ItemRow) -> Survivor:
        """A waiting item."""
        return cls(item.id, item.priority, item.payload, item.merged_chars)

    @classmethod
    def fresh(cls, event: StimulusAccepted) -> Survivor:
        """A stimulus of the same append."""
        return cls(event.item_id, event.priority, event.payload, 0)

    def after(self, event: ItemMerged) -> Survivor:
        """What it is once something has joined it."""
        marks = dict.fromkeys(event.marks, True)
        payload = replace(self.payload, extra={**self.payload.extra, **marks})
        return Survivor(self.id, event.priority, payload, self.characters + event.characters)


def join(survivor: Survivor, event: StimulusAccepted, policy_version: int) -> ItemMerged | None:
    """The stimulus joins a waiting item of its key; None if that has taken all it can."""
    characters = len(event.payload.content)
    if survivor.characters + characters > JOINED_CHARACTERS:
        return None
    extra, has = event.payload.extra, survivor.payload.extra
    requirement = event.payload.requirement_id
    kind = REGISTRY[event.source_type]
    return ItemMerged(
        agent_id=event.agent_id, item_id=event.item_id, into=survivor.id,
        priority=min(survivor.priority, event.priority),
        marks=tuple(mark for mark in MARKS if extra.get(mark) and not has.get(mark)),
        requirement_id=None if survivor.payload.requirement_id else requirement,
        characters=characters,
        decision=Decision(
            f"dec_{digest((event.item_id, 'merge'))}", "merge", f"same_{kind.merges_by}",
            f"{kind.label} joins {survivor.id}, which waits and is about the same",
            {
                "priority": event.priority, "survivorPriority": survivor.priority,
                "senderId": event.sender.id, "characters": characters,
            },
            policy_version,
        ),
    )  # fmt: skip


def joined_events(
    events: tuple[StimulusAccepted, ...], waiting: Mapping[str, ItemRow], policy_version: int
) -> tuple[StimulusAccepted | ItemMerged, ...]:
    """`events`, each followed by its joining of what waits or came before it, if it has a key.

    `waiting` are the items that can be joined, by key.
    """
    survivors = {key: Survivor.of(item) for key, item in waiting.items()}
    told: list[StimulusAccepted | ItemMerged] = []
    for event in events:
        told.append(event)
        key = merge_key(event.source_type, event.payload)
        if key is None:
            continue
        survivor = survivors.get(key)
        merged = join(survivor, event, policy_version) if survivor is not None else None
        if survivor is None or merged is None:
            survivors[key] = Survivor.fresh(event)
        else:
            told.append(merged)
            survivors[key] = survivor.after(merged)
    return tuple(told)


def composed(item: ItemRow, joined: tuple[ItemRow, ...]) -> Payload:
    """The payload of an item with what has joined it, in order of arrival.

    Messages of a channel name their senders and are listed in `extra.messages`; where types
    differ, each block but the item's own names its type.
    """
    if not joined:
        return item.payload
    family = tuple(sorted((item, *joined), key=lambda one: one.seq))
    content = family[0].payload.content
    if family[0].source_type != item.source_type:
        content = f"[{family[0].source_type}] {content}"
    for one in family[1:]:
        content += _block(item, one)
    extra = item.payload.extra
    if _in_channel(item) and all(_in_channel(one) for one in family):
        extra = {**extra, "messages": [_message(one) for one in family]}
    return replace(item.payload, content=content, extra=extra, summary=summary_with(item))


def summary_with(item: ItemRow) -> str:
    """One line about an item, with how many have joined it."""
    plain = item.payload.summary or item.payload.content[:100]
    return f"{plain} (+{item.merged})" if item.merged else plain


def _block(item: ItemRow, one: ItemRow) -> str:
    text = one.payload.content
    if one.source_type != item.source_type:
        return f"{RULE}[{one.source_type}] {text}"
    if _in_channel(one):
        return f"{CHANNEL_RULE}[{_sender(one)}]: {text}"
    return RULE + text


def _in_channel(item: ItemRow) -> bool:
    return isinstance(item.payload.extra.get("channelKey"), str)


def _sender(item: ItemRow) -> str:
    named = item.payload.extra.get("senderName")
    return named if isinstance(named, str) and named else item.sender.name or UNKNOWN


def _message(item: ItemRow) -> dict[str, Any]:
    sender = item.payload.extra.get("senderId") or item.sender.id
    said = {
        "senderName": _sender(item), "content": item.payload.content,
        "timestamp": item.queued_at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
    }  # fmt: skip
    return said if sender is None else {"senderId": sender, **said}
