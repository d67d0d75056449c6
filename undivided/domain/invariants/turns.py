"""4: what waits is shown to a model only in its own turn, or when all that waits is considered.

A turn is told its input and live updates, and nothing else comes from the mailbox. So each is
about items that became its own in that very append.
"""

from __future__ import annotations

from collections.abc import Iterator

from undivided.domain.events import items as i
from undivided.domain.events import sessions as s
from undivided.domain.events import triage as t
from undivided.domain.invariants.finding import Finding, Transaction, broken
from undivided.domain.placed import Placed

INVARIANT = 4


class OwnTurnOnly:
    """Each item that a turn is told of is picked for it, or merged into it, in the same append."""

    def transaction(self, events: Transaction) -> Iterator[Finding]:
        """What one append shows a model that is not its turn's to know."""
        told = [placed.recorded.event for placed in events]
        picked = {(e.turn_id, e.item_id) for e in told if isinstance(e, i.ItemPicked)}
        merged = {(e.turn_id, e.item_id) for e in told if isinstance(e, i.ItemMerged)}
        considered = {e.turn_id for e in told if isinstance(e, t.TriageBegan)}
        started = {e.turn_id for e in told if isinstance(e, s.TurnStarted)}
        for placed in events:
            match placed.recorded.event:
                case s.TurnStarted() as event:
                    yield from _not_picked(placed, event, picked, considered)
                case s.TurnUpdated(turn_id=turn, item_id=item) if (turn, item) not in merged:
                    text = f"turn {turn} is told what {item} says, which did not go into it"
                    yield broken(INVARIANT, "updated_without_merge", item, placed, text)
                case i.ItemPicked(turn_id=turn, item_id=item) if turn not in started:
                    text = f"item {item} is picked for turn {turn}, which does not start with it"
                    yield broken(INVARIANT, "picked_without_turn", item, placed, text)
                case _:
                    pass

    def finish(self) -> Iterator[Finding]:
        """Nothing is open at the end."""
        return iter(())


def _not_picked(
    placed: Placed, event: s.TurnStarted, picked: set[tuple[str, str]], considered: set[str]
) -> Iterator[Finding]:
    for item in event.item_ids:
        if (event.turn_id, item) not in picked:
            text = f"turn {event.turn_id} is told of item {item}, which was not picked for it"
            yield broken(INVARIANT, "told_without_pick", item, placed, text)
    if not event.item_ids and event.turn_id not in considered:
        text = f"turn {event.turn_id} is about nothing: no item, and no deliberation"
        yield broken(INVARIANT, "turn_about_nothing", event.turn_id, placed, text)
