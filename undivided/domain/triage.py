"""Triage: whether an agent turns to the head of its queue at once, or considers all that waits.

A reflex costs nothing and a deliberation a conversation with the model, so that one is held only
where order alone does not say what is best: several things wait, or one as urgent as the head.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from undivided.domain.policy import Policy
from undivided.domain.state.item import ItemRow
from undivided.domain.stimuli import REGISTRY

ReflexRule = Literal["person_first", "alone", "no_deliberation", "clear_priority"]
DeliberateRule = Literal["backlog", "ambiguous_priority"]


class Reflex(Struct, frozen=True):
    """The head is picked at once."""

    rule: ReflexRule


class Deliberate(Struct, frozen=True):
    """Everything that waits is considered first."""

    rule: DeliberateRule


def tier(
    head: ItemRow, rest: tuple[ItemRow, ...], policy: Policy, has_deliberation: bool
) -> Reflex | Deliberate:
    """Which it is for `head`, with `rest` waiting besides it.

    The backlog is counted without the head, and decides before the priorities do.
    """
    if _is_persons(head):
        return Reflex("person_first")
    if not rest:
        return Reflex("alone")
    if policy.triage == "off" or not has_deliberation:
        return Reflex("no_deliberation")
    if len(rest) >= policy.triage_backlog_threshold:
        return Deliberate("backlog")
    if any(item.priority <= head.priority for item in rest):
        return Deliberate("ambiguous_priority")
    return Reflex("clear_priority")


def called_away(queue: tuple[ItemRow, ...], considered: tuple[str, ...]) -> ItemRow | None:
    """The message of a person that ends a deliberation: one that was not there when it began."""
    return next((i for i in queue if _is_persons(i) and i.id not in considered), None)


def _is_persons(item: ItemRow) -> bool:
    kind = REGISTRY.get(item.source_type)
    return kind is not None and kind.protected
