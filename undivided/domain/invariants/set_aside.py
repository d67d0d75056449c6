"""11: a turn that is set aside comes back, with its items and by them.

Nothing else brings it back: each of its items is put off together with it, keeps it while it
waits, and ends only with it. What waits for a person besides comes back at its own time at last.
"""

from __future__ import annotations

from collections.abc import Iterator

from undivided.domain.events import items as i
from undivided.domain.events import sessions as s
from undivided.domain.invariants.finding import Finding, Transaction, broken, name_of
from undivided.domain.placed import Placed

INVARIANT = 11

_TAKEN = i.ItemMerged | i.ItemDropped | i.ItemExpired | i.ItemPicked | i.ItemRequeued
_OVER = i.ItemCompleted | i.ItemCancelled | i.ItemDeadLettered


class SetAsideReturns:
    """Whoever is preempted comes back."""

    def __init__(self) -> None:
        self._items: dict[str, tuple[str, ...]] = {}
        """The items of each open turn."""
        self._aside: dict[str, str] = {}
        """The turn that was set aside with an item."""

    def transaction(self, events: Transaction) -> Iterator[Finding]:
        """The turns that one append sets aside, or leaves set aside, for ever."""
        told = [placed.recorded.event for placed in events]
        deferred = {(e.turn_id, e.item_id) for e in told if isinstance(e, i.ItemDeferred)}
        ended = {e.turn_id for e in told if isinstance(e, s.TurnEnded)}
        for placed in events:
            match placed.recorded.event:
                case s.TurnStarted(turn_id=turn, item_ids=items):
                    self._items[turn] = items
                case s.TurnPreempted() as event:
                    yield from self._preempted(placed, event, deferred)
                case i.ItemDeferred(waits=True, wait_s=None, item_id=item):
                    text = f"item {item} is put off until an answer comes, and for ever without"
                    yield broken(INVARIANT, "put_off_for_ever", item, placed, text)
                case i.ItemResumed(item_id=item):
                    self._aside.pop(item, None)
                case event if isinstance(event, _TAKEN | _OVER):
                    yield from self._taken(placed, event, ended)
                case _:
                    pass
        for turn in ended:
            for item in self._items.pop(turn, ()):
                self._aside.pop(item, None)

    def finish(self) -> Iterator[Finding]:
        """Nothing: a turn may still be set aside at the end."""
        return iter(())

    def _preempted(
        self, placed: Placed, event: s.TurnPreempted, deferred: set[tuple[str | None, str]]
    ) -> Iterator[Finding]:
        turn = event.turn_id
        for item in self._items.get(turn, ()):
            self._aside[item] = turn
            if (turn, item) not in deferred:
                text = f"turn {turn} is set aside without its item {item}, which brings it back"
                yield broken(INVARIANT, "set_aside_alone", turn, placed, text)

    def _taken(self, placed: Placed, event: _TAKEN | _OVER, ended: set[str]) -> Iterator[Finding]:
        turn = self._aside.get(event.item_id)
        if turn is not None and turn not in ended:
            text = (
                f"{name_of(event)} takes item {event.item_id} from turn {turn}, which was set "
                "aside with it and cannot come back"
            )
            yield broken(INVARIANT, "set_aside_for_ever", turn, placed, text)
