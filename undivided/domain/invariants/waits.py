"""11: a turn that waits has someone or something that can end the wait.

Every wait has its time, after which the sweep ends it, and the agent knows it: the sweep looks
at agents. One for a person also has the request that the person can answer, made in the same
append; and the answer tells the turn in its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from undivided.domain.events import flights as f
from undivided.domain.events import people as p
from undivided.domain.events import sessions as s
from undivided.domain.invariants.finding import Finding, Transaction, broken
from undivided.domain.placed import Placed
from undivided.domain.waits import Approval

INVARIANT = 11


class WaitsEnd:
    """No turn waits for what cannot come."""

    def __init__(self) -> None:
        self._waiting: dict[str, str] = {}
        """The approval that each open turn asked for last."""

    def transaction(self, events: Transaction) -> Iterator[Finding]:
        """The waits of one append that nothing ends, and answers that reach nobody."""
        asked = {
            (placed.recorded.event.turn_id, placed.recorded.event.approval_id)
            for placed in events
            if isinstance(placed.recorded.event, p.ApprovalRequested)
        }
        known = {
            placed.recorded.event.turn_id: placed.recorded.event.wait
            for placed in events
            if isinstance(placed.recorded.event, f.FocusSuspended)
        }
        told = {
            placed.recorded.event.turn_id
            for placed in events
            if isinstance(placed.recorded.event, f.FocusAnswered)
        }
        for placed in events:
            match placed.recorded.event:
                case s.TurnSuspended() as event:
                    yield from self._suspended(placed, event, asked)
                    if known.get(event.turn_id) != event.wait:
                        text = f"turn {event.turn_id} waits, and its agent does not know for what"
                        yield broken(INVARIANT, "waits_unknown", event.turn_id, placed, text)
                case p.ApprovalAnswered(approval_id=approval, turn_id=turn):
                    if self._waiting.get(turn) == approval and turn not in told:
                        text = f"approval {approval} is answered, and turn {turn} not told"
                        yield broken(INVARIANT, "answered_but_not_told", turn, placed, text)
                case s.TurnEnded(turn_id=turn):
                    self._waiting.pop(turn, None)
                case _:
                    pass

    def finish(self) -> Iterator[Finding]:
        """Nothing: whoever waits at the end still can be answered."""
        return iter(())

    def _suspended(
        self, placed: Placed, event: s.TurnSuspended, asked: set[tuple[str, str]]
    ) -> Iterator[Finding]:
        if not math.isfinite(event.wait_s) or event.wait_s < 0:
            text = f"turn {event.turn_id} waits for {event.wait_s} s, which never pass"
            yield broken(INVARIANT, "waits_for_ever", event.turn_id, placed, text)
        if not isinstance(event.wait, Approval):
            return
        if (event.turn_id, event.wait.approval_id) not in asked:
            text = f"turn {event.turn_id} waits for an answer that nobody was asked for"
            yield broken(INVARIANT, "nobody_was_asked", event.turn_id, placed, text)
        self._waiting[event.turn_id] = event.wait.approval_id
