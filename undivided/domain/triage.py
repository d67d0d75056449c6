"""Triage: whether an agent turns to the head of its queue at once, or considers all that waits.

A reflex costs nothing and a deliberation a conversation with the model, so that one is held only
where order alone does not say what is best: several things wait, or one as urgent as the head.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from undivided.domain.events.items import StimulusAccepted
from undivided.domain.policy import Policy
from undivided.domain.state.agent import AgentRow, Focused
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


def in_vain(agent: AgentRow, queue: tuple[ItemRow, ...]) -> bool:
    """Whether all that waits was considered before without a plan: then order decides."""
    last = agent.last_triage
    return last is not None and all(item.seq < last.undecided_below for item in queue)


def called_away(queue: tuple[ItemRow, ...], considered: tuple[str, ...]) -> ItemRow | None:
    """The message of a person that ends a deliberation: one that was not there when it began."""
    return next((i for i in queue if _is_persons(i) and i.id not in considered), None)


def calls_away(agent: AgentRow, accepted: Sequence[StimulusAccepted]) -> bool:
    """Whether what is accepted ends the deliberation that the agent is in."""
    focus = agent.attention
    deliberates = isinstance(focus, Focused) and focus.mode == "deliberating"
    return deliberates and any(_is_persons(event) for event in accepted)


def _is_persons(item: ItemRow | StimulusAccepted) -> bool:
    kind = REGISTRY.get(item.source_type)
    return kind is not None and kind.protected
