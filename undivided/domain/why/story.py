"""An item's story: its events in order, each told in a sentence.

Told are the events that are about the item, those of its turns, and those about others to which
it was compared. Of what happened often (others that joined it, or were picked instead) the first
are told one by one and the rest is counted.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import get_args

from msgspec import Struct

from undivided.domain.coordinates import Coordinate
from undivided.domain.decisions import Decision
from undivided.domain.outcomes import outcome_name
from undivided.domain.placed import Placed
from undivided.domain.state.item import Done, Dropped, ItemRow, Merged, Processing
from undivided.domain.why import mail, turns
from undivided.domain.why.line import Deeds, Kind, Line, decision_of
from undivided.domain.why.mail import MailEvent
from undivided.domain.why.turns import TurnEvent

TOLD_EACH = 50
"""How many sentences of one kind are told one by one."""
_MAIL, _TURN = get_args(MailEvent), get_args(TurnEvent)
_OFTEN = {"joined": "joined it", "passed_over": "times another was preferred to it"}


class Story(Struct, frozen=True, kw_only=True):
    """All that is known about an item.

    `events` in the order of the log, each once; `deeds` by turn; `unnamed` counts the picks of
    others before its first whose decisions do not name it; `survivor` is what it was merged into.
    """

    item: ItemRow
    events: tuple[Placed, ...] = ()
    deeds: dict[str, Deeds] = {}
    unnamed: int = 0
    survivor: ItemRow | None = None


class Sentence(Struct, frozen=True, kw_only=True):
    """One sentence of a story, when and where it happened, and what was decided there."""

    kind: Kind
    text: str
    at: datetime
    coordinate: Coordinate
    event_id: str | None = None
    decision: Decision | None = None


def tell(story: Story) -> tuple[Sentence, ...]:
    """The sentences of a story, in order."""
    told: list[Sentence] = []
    for placed in story.events:
        line = _line(story, placed)
        if line is not None:
            told.append(_sentence(placed, line))
    told = _with_unnamed(story, _bounded(told))
    return (*told, *_now(story, told))


def tellable(event: object) -> bool:
    """Whether a story has a sentence for such an event."""
    return isinstance(event, _MAIL + _TURN)


def _line(story: Story, placed: Placed) -> Line | None:
    event = placed.recorded.event
    if isinstance(event, _TURN):
        deeds = story.deeds.get(event.turn_id, Deeds())
        return turns.line_of(event, story.item, deeds)
    if isinstance(event, _MAIL):
        return mail.line_of(event, story.item)
    return None


def _sentence(placed: Placed, line: Line) -> Sentence:
    recorded = placed.recorded
    return Sentence(
        kind=line.kind, text=line.text, at=recorded.at, coordinate=placed.coordinate,
        event_id=recorded.id, decision=decision_of(recorded.event),
    )  # fmt: skip


def _bounded(told: list[Sentence]) -> list[Sentence]:
    """The same, with what happened too often to tell each time counted at its last time."""
    number = Counter(one.kind for one in told)
    seen: Counter[str] = Counter()
    kept: list[Sentence] = []
    for one in told:
        seen[one.kind] += 1
        if one.kind not in _OFTEN or seen[one.kind] <= TOLD_EACH:
            kept.append(one)
        elif seen[one.kind] == number[one.kind]:
            text = f"And {number[one.kind] - TOLD_EACH} more {_OFTEN[one.kind]} by then."
            kept.append(_remark(one.kind, text, one))
    return kept


def _with_unnamed(story: Story, told: list[Sentence]) -> list[Sentence]:
    """The same, with the picks that passed it over without naming it counted before its own."""
    if not story.unnamed or not told:
        return told
    own = (n for n, one in enumerate(told) if one.kind == "picked")
    place = next(own, len(told))
    text = (
        f"Others were picked {story.unnamed} times before it whose decisions do not name it: "
        "a decision names only the best of those that it passes over."
    )
    return [*told[:place], _remark("passed_over", text, told[place - 1]), *told[place:]]


def _now(story: Story, told: list[Sentence]) -> list[Sentence]:
    """Where it stands, if the last event does not say so."""
    if not told:
        return []
    match story.item.phase:
        case Processing(turn_id=turn_id):
            done = turns.deeds_in_words(story.deeds.get(turn_id, Deeds()))
            text = f"Turn {turn_id} is not over: so far it has {done}."
            return [_remark("at_work", text, told[-1])]
        case Merged(into=into) if story.survivor is not None:
            survivor = story.survivor
            name = into if survivor.id == into else f"{into}, and with it {survivor.id},"
            text = f"{name} {_stands(survivor)}."
            return [_remark("survivor", text, told[-1])]
        case _:
            return []


def _stands(item: ItemRow) -> str:
    match item.phase:
        case Done(outcome=outcome):
            return f"is over, with the outcome {outcome_name(outcome)}"
        case Dropped(reason=reason):
            return f"was dropped, {reason}"
        case phase:
            return f"is {str(phase.__struct_config__.tag).replace('_', ' ')}"


def _remark(kind: Kind, text: str, beside: Sentence) -> Sentence:
    return Sentence(kind=kind, text=text, at=beside.at, coordinate=beside.coordinate)
