"""Merging: several stimuli about the same thing become one item, and are handled once.

What joins keeps its own row and its own words; the item that it joins only counts it, and takes
over the better priority and whatever marks it lacks. So accepting the thousandth comment costs
what the tenth does, and nothing that somebody said is ever rewritten. Whoever shows or prompts
the item puts the words together (`composed`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from undivided.domain.decisions import Decision
from undivided.domain.events.items import (
    Delivery,
    ItemDropped,
    ItemMerged,
    Payload,
    StimulusAccepted,
)
from undivided.domain.ids import digest
from undivided.domain.state.item import ItemRow
from undivided.domain.stimuli import REGISTRY

RULE = "\n\n---\n\n"
CHANNEL_RULE = "\n\n---\n"
JOINED_CHARACTERS = 1_000_000
"""Characters that join one item at most; what comes then stands for itself."""
JOINED_ITEMS = 10_000
"""How many join one item at most."""
MARKS = ("actionRequired", "directMention")
"""What an item has from then on if anything that joined it had it."""
STANDALONE = "triggerExecution"
"""The mark of an item that starts a task: it never merges."""
UNKNOWN = "unknown"


class Arriving(Protocol):
    """What can be asked of a stimulus before and after it is accepted."""

    @property
    def source_type(self) -> str:
        """Its type."""

    @property
    def payload(self) -> Payload:
        """What it says."""

    @property
    def delivery(self) -> Delivery:
        """Whether it waits or steers."""

    @property
    def session_id(self) -> str | None:
        """The session it asks for."""


def merge_key(stimulus: Arriving) -> str | None:
    """What a stimulus can join by, or be joined by; None where it stands for itself.

    What asks for a session, or to enter a turn at work, joins only what asks for the same.
    """
    kind, payload = REGISTRY.get(stimulus.source_type), stimulus.payload
    if kind is None or payload.extra.get(STANDALONE):
        return None
    match kind.merges_by:
        case "taskId":
            value: Any = payload.task_id
        case "requirementId":
            value = payload.requirement_id
        case "channelKey":
            value = payload.extra.get("channelKey")
        case None:
            value = "newest" if kind.replaces else None
    if not isinstance(value, str) or not value:
        return None
    return f"{kind.name}/{stimulus.delivery}/{stimulus.session_id or ''}/{value}"


class Survivor(Struct, frozen=True):
    """An item that waits and can be joined, as far as joining needs to know.

    `items` have joined it so far, with so many `characters`.
    """

    id: str
    priority: int
    payload: Payload
    items: int
    characters: int

    @classmethod
    def of(cls, item: ItemRow) -> Survivor:
        """A waiting item."""
        return cls(item.id, item.priority, item.payload, item.merged, item.merged_chars)

    @classmethod
    def fresh(cls, event: StimulusAccepted) -> Survivor:
        """A stimulus of the same append."""
        return cls(event.item_id, event.priority, event.payload, 0, 0)

    def after(self, event: ItemMerged) -> Survivor:
        """What it is once something has joined it."""
        marks = dict.fromkeys(event.marks, True)
        payload = replace(
            self.payload, extra={**self.payload.extra, **marks},
            requirement_id=self.payload.requirement_id or event.requirement_id,
        )  # fmt: skip
        return Survivor(
            self.id, event.priority, payload,
            self.items + event.items, self.characters + event.characters,
        )  # fmt: skip

    def has_room(self, items: int, characters: int) -> bool:
        """Whether so much more may join it."""
        return (
            self.items + items <= JOINED_ITEMS and self.characters + characters <= JOINED_CHARACTERS
        )


def marks_brought(to: Payload, by: Payload) -> tuple[str, ...]:
    """The marks that an item gets from what joins it."""
    return tuple(mark for mark in MARKS if by.extra.get(mark) and not to.extra.get(mark))


def join(survivor: Survivor, event: StimulusAccepted, policy_version: int) -> ItemMerged | None:
    """The stimulus joins a waiting item of its key; None if that has taken all it can."""
    characters = len(event.payload.content)
    if not survivor.has_room(1, characters):
        return None
    kind = REGISTRY[event.source_type]
    return ItemMerged(
        agent_id=event.agent_id, item_id=event.item_id, into=survivor.id,
        priority=min(survivor.priority, event.priority),
        marks=marks_brought(survivor.payload, event.payload),
        requirement_id=None if survivor.payload.requirement_id else event.payload.requirement_id,
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


def superseded(survivor: Survivor, event: StimulusAccepted, policy_version: int) -> ItemDropped:
    """Of this type only the newest waits: what waited goes."""
    label = REGISTRY[event.source_type].label
    return ItemDropped(
        agent_id=event.agent_id, item_id=survivor.id, reason="superseded",
        decision=Decision(
            f"dec_{digest((survivor.id, 'drop'))}", "drop", "newest_only",
            f"{label} is superseded by {event.item_id}, which says all that it would have",
            {"by": event.item_id}, policy_version,
        ),
    )  # fmt: skip


Told = StimulusAccepted | ItemMerged | ItemDropped
"""What accepting leads to."""


def joined_events(
    events: tuple[StimulusAccepted, ...], waiting: Mapping[str, ItemRow], policy_version: int
) -> tuple[Told, ...]:
    """`events`, each followed by its joining of what waits or came before it, if it has a key.

    `waiting` are the items that can be joined, by key.
    """
    survivors = {key: Survivor.of(item) for key, item in waiting.items()}
    told: list[Told] = []
    for event in events:
        told.append(event)
        key = merge_key(event)
        if key is None:
            continue
        survivor, merged = survivors.get(key), None
        if survivor is not None and REGISTRY[event.source_type].replaces:
            told.append(superseded(survivor, event, policy_version))
        elif survivor is not None:
            merged = join(survivor, event, policy_version)
        if survivor is None or merged is None:
            survivors[key] = Survivor.fresh(event)
        else:
            told.append(merged)
            survivors[key] = survivor.after(merged)
    return tuple(told)


def composed(item: ItemRow, joined: tuple[ItemRow, ...]) -> Payload:
    """The payload of an item with what has joined it, in order of arrival.

    Messages of a channel name their senders and are listed in `extra.messages`; where types
    differ, each block of another type than the item's own names it.
    """
    if not joined:
        return item.payload
    first, *others = family = sorted((item, *joined), key=lambda one: one.seq)
    in_channel = all(_in_channel(one) for one in family)
    content = _named(item, first)
    for one in others:
        said = f"{CHANNEL_RULE}[{_sender(one)}]: {one.payload.content}"
        content += said if in_channel else RULE + _named(item, one)
    extra = item.payload.extra
    if in_channel:
        extra = {**extra, "messages": [_message(one) for one in family]}
    return replace(item.payload, content=content, extra=extra, summary=summary_with(item))


def summary_with(item: ItemRow) -> str:
    """One line about an item, with how many have joined it."""
    plain = item.payload.summary or item.payload.content[:100]
    return f"{plain} (+{item.merged})" if item.merged else plain


def _named(item: ItemRow, one: ItemRow) -> str:
    text = one.payload.content
    return text if one.source_type == item.source_type else f"[{one.source_type}] {text}"


def _in_channel(item: ItemRow) -> bool:
    kind = REGISTRY.get(item.source_type)
    known = kind is not None and kind.is_channel_message
    return known and isinstance(item.payload.extra.get("channelKey"), str)


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
