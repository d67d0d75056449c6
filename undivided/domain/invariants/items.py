"""2: every accepted item is in exactly one place: waiting, in a turn, or over with a reason.

3: it is completed only in the transaction that ends the turn that contained it.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from undivided.domain.coordinates import Coordinate
from undivided.domain.events import items as i
from undivided.domain.events import sessions as s
from undivided.domain.events import triage as t
from undivided.domain.invariants.finding import Finding, Transaction, broken, name_of
from undivided.domain.placed import Placed
from undivided.domain.recorded import agent_stream

NOTHING_LOST = 2
COMPLETED_WITH_TURN = 3

_LEFT = i.ItemMerged | i.ItemDropped | i.ItemExpired
_MOVES = i.ItemPicked | _LEFT | i.ItemDeferred | i.ItemResumed
_GIVEN_UP = i.ItemDeadLettered | i.ItemExpired
FATE = i.ItemCompleted | i.ItemRequeued | i.ItemDeadLettered | i.ItemCancelled


class _Place(Struct, frozen=True):
    """Where an item is: in `turn`, or waiting if that is None; since which event.

    There may be very many of them, so that none holds an event.
    """

    agent: str
    turn: str | None
    since: Coordinate
    version: int


def _place(agent: str, turn: str | None, placed: Placed) -> _Place:
    return _Place(agent, turn, placed.coordinate, placed.recorded.version)


class NothingLost:
    """Items move only along their lifecycle, and none is left behind in a turn that is over.

    An item that is over is forgotten here; should it move again, it is as unknown as one that
    was never accepted, and a second acceptance shows by its place in the mailbox.
    """

    def __init__(self) -> None:
        self._places: dict[str, _Place] = {}
        self._last_seq: dict[str, int] = {}
        self._open_turns: set[str] = set()
        self._set_aside: set[str] = set()
        self._considered: dict[str, frozenset[str]] = {}

    def transaction(self, events: Transaction) -> Iterator[Finding]:
        """What one append does to items that its lifecycle does not allow."""
        self._turns(events)
        for placed in events:
            match placed.recorded.event:
                case i.StimulusAccepted() as event:
                    yield from self._accepted(placed, event)
                case i.ItemPicked() as event:
                    yield from self._moved(placed, event, None, event.turn_id)
                case event if isinstance(event, FATE):
                    yield from self._fate(placed, event)
                case event if isinstance(event, _LEFT):
                    yield from self._moved(placed, event, None, None)
                    self._places.pop(event.item_id, None)
                case i.ItemDeferred() as event:
                    yield from self._moved(placed, event, event.turn_id, None)
                case i.ItemResumed() as event:
                    yield from self._moved(placed, event, None, event.turn_id)
                case _:
                    pass
        self._deliberations_over(events)
        yield from _unannounced(events)

    def finish(self) -> Iterator[Finding]:
        """The items that are still in a turn although no such turn is open."""
        for item, place in self._places.items():
            if place.turn is not None and place.turn not in self._open_turns:
                yield Finding(
                    invariant=NOTHING_LOST, rule="left_in_ended_turn", subject=item,
                    where=str(place.since), stream=agent_stream(place.agent),
                    version=place.version,
                    text=f"item {item} is in turn {place.turn}, which is not open: "
                    "nobody has it",
                )  # fmt: skip

    def _turns(self, events: Transaction) -> None:
        for placed in events:
            match placed.recorded.event:
                case s.TurnStarted(turn_id=turn):
                    self._open_turns.add(turn)
                case s.TurnEnded(turn_id=turn):
                    self._open_turns.discard(turn)
                case s.TurnPreempted(turn_id=turn):
                    self._set_aside.add(turn)
                case s.TurnResumed(turn_id=turn):
                    self._set_aside.discard(turn)
                case t.TriageBegan(turn_id=turn, item_ids=considered):
                    self._considered[turn] = frozenset(considered)
                case _:
                    pass

    def _deliberations_over(self, events: Transaction) -> None:
        for placed in events:
            if isinstance(placed.recorded.event, s.TurnEnded):
                self._considered.pop(placed.recorded.event.turn_id, None)

    def _accepted(self, placed: Placed, event: i.StimulusAccepted) -> Iterator[Finding]:
        item, last = event.item_id, self._last_seq.get(event.agent_id, 0)
        if item in self._places:
            yield broken(NOTHING_LOST, "accepted_twice", item, placed,
                         f"item {item} is accepted although it is in the mailbox")  # fmt: skip
        if event.seq <= last:
            text = f"item {item} got place {event.seq} of agent {event.agent_id} after {last}"
            yield broken(NOTHING_LOST, "place_taken", item, placed, text)
        self._last_seq[event.agent_id] = max(last, event.seq)
        self._places[item] = _place(event.agent_id, None, placed)

    def _fate(self, placed: Placed, event: FATE) -> Iterator[Finding]:
        turn = event.turn_id
        if turn is not None and turn in self._open_turns:
            text = f"{name_of(event)} of item {event.item_id} leaves its turn {turn} open"
            yield broken(NOTHING_LOST, "fate_without_end", event.item_id, placed, text)
        yield from self._moved(placed, event, turn, None)
        if not isinstance(event, i.ItemRequeued):
            self._places.pop(event.item_id, None)

    def _moved(
        self, placed: Placed, event: FATE | _MOVES, origin: str | None, to: str | None
    ) -> Iterator[Finding]:
        place = self._places.get(event.item_id)
        if place is not None and place.turn is None and origin in self._set_aside:
            origin = None  # it waits outside of its turn, which is over with it
        if isinstance(event, i.ItemCompleted) and event.item_id in self._considered.get(
            event.turn_id, ()
        ):
            origin = None  # a deliberation dealt with it while it waited
        if place is None or place.turn != origin or place.agent != event.agent_id:
            text = f"{name_of(event)} of item {event.item_id}, {_told(place)}"
            yield broken(NOTHING_LOST, "not_where_it_was", event.item_id, placed, text)
        self._places[event.item_id] = _place(event.agent_id, to, placed)


def _told(place: _Place | None) -> str:
    if place is None:
        return "which was never accepted, or is over"
    where = "waits" if place.turn is None else f"is in turn {place.turn}"
    return f"which {where} at agent {place.agent}"


def _unannounced(events: Transaction) -> Iterator[Finding]:
    """The dead letters of one append of which nobody is told in it."""
    told = {
        placed.recorded.event.notice_id
        for placed in events
        if isinstance(placed.recorded.event, i.NoticePosted)
    }
    for placed in events:
        event = placed.recorded.event
        if isinstance(event, _GIVEN_UP) and event.notice_id not in told:
            text = f"item {event.item_id} was given up and nobody was told in {event.notice_id}"
            yield broken(NOTHING_LOST, "given_up_silently", event.item_id, placed, text)


class CompletedWithTurn:
    """`item.completed` stands only beside the `turn.ended` of the turn that contained it."""

    def transaction(self, events: Transaction) -> Iterator[Finding]:
        """The completions of one append whose turn does not end in it."""
        ended = {
            (placed.recorded.event.turn_id, item)
            for placed in events
            if isinstance(placed.recorded.event, s.TurnEnded)
            for item in placed.recorded.event.item_ids
        }
        for placed in events:
            event = placed.recorded.event
            if isinstance(event, i.ItemCompleted) and (event.turn_id, event.item_id) not in ended:
                text = (
                    f"item {event.item_id} is completed in a transaction that does not end "
                    f"turn {event.turn_id} with it"
                )
                rule = "completed_without_turn"
                yield broken(COMPLETED_WITH_TURN, rule, event.item_id, placed, text)

    def finish(self) -> Iterator[Finding]:
        """Nothing is open at the end."""
        return iter(())
