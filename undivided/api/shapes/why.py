"""An item's story as the API tells it."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Struct, UnsetType

from undivided.api.answers import instant
from undivided.api.shapes.items import times_of
from undivided.domain.decisions import Decision
from undivided.domain.why.line import Kind
from undivided.domain.why.story import Sentence, Story, tell


class DecisionTold(Struct, frozen=True, rename="camel", kw_only=True):
    """The decision behind a sentence: its rule, what that looked at, and whom it passed over."""

    id: str
    type: str
    rule: str
    reasoning: str
    inputs: dict[str, Any]
    losers: tuple[str, ...]
    policy_version: int


class SentenceShape(Struct, frozen=True, rename="camel", kw_only=True):
    """One sentence of a story; without `eventId` it sums up what is not told one by one."""

    at: str
    text: str
    kind: Kind
    position: str
    event_id: str | UnsetType = UNSET
    decision: DecisionTold | UnsetType = UNSET


class Why(Struct, frozen=True, rename="camel", kw_only=True):
    """What became of an item, and why; the sentences in the order in which it happened."""

    item_id: str
    agent_id: str
    status: str
    sentences: list[SentenceShape]
    position: str
    outcome: str | UnsetType = UNSET


def why_shape(story: Story) -> Why:
    """How a story is told."""
    row, times, told = story.item, times_of(story.item), tell(story)
    return Why(
        item_id=row.id, agent_id=row.agent_id, status=times.status,
        sentences=[_sentence(one) for one in told],
        position=str(max((one.coordinate for one in told), default="0-0")),
        outcome=times.outcome or UNSET,
    )  # fmt: skip


def _sentence(one: Sentence) -> SentenceShape:
    made = one.decision
    return SentenceShape(
        at=instant(one.at), text=one.text, kind=one.kind, position=str(one.coordinate),
        event_id=one.event_id or UNSET, decision=UNSET if made is None else _decision(made),
    )  # fmt: skip


def _decision(made: Decision) -> DecisionTold:
    return DecisionTold(
        id=made.id, type=made.type, rule=made.rule, reasoning=made.reasoning,
        inputs=made.inputs, losers=made.losers, policy_version=made.policy_version,
    )  # fmt: skip
