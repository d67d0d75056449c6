"""8: what is over never changes again.

A check holds what is open: turns, callbacks, requests for approval. A step, an answer or an end
of one that is not open comes too late, or before its time. (Items are held to their own
lifecycle by 2; runs, tasks and requirements join when there are any.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from undivided.domain.events import callbacks as c
from undivided.domain.events import people as p
from undivided.domain.events import sessions as s
from undivided.domain.events.heartbeats import HeartbeatEnqueued
from undivided.domain.invariants.finding import Finding, Transaction, broken, name_of
from undivided.domain.placed import Placed

INVARIANT = 8

_STEPS = (
    s.ModelResponded | s.ToolCallStarted | s.ToolCallFinished | s.TurnSuspended | s.TurnResumed
    | s.TurnYielded | s.TurnUpdated | s.TurnNudged | s.TurnPreempted | s.DeliberationPlanned
)  # fmt: skip
_ANSWERS = p.ApprovalAnswered | p.ApprovalExpired | p.ApprovalCancelled
_ENDS = c.CallbackResolved | c.CallbackCancelled


class TerminalStays:
    """Nothing happens to what is over."""

    def __init__(self) -> None:
        self._turns: set[str] = set()
        self._approvals: set[str] = set()
        self._callbacks: set[str] = set()

    def transaction(self, events: Transaction) -> Iterator[Finding]:
        """What one append does to what is not open."""
        for placed in events:
            match placed.recorded.event:
                case s.TurnStarted(turn_id=turn):
                    self._turns.add(turn)
                case p.ApprovalRequested(approval_id=approval):
                    self._approvals.add(approval)
                case c.CallbackRegistered(callback_id=callback):
                    self._callbacks.add(callback)
                case _:
                    pass
        for placed in events:
            yield from self._happens(placed)
        for placed in events:
            if isinstance(placed.recorded.event, s.TurnEnded):
                turn = placed.recorded.event.turn_id
                yield from _over(placed, self._turns, turn, self._turns.discard)

    def finish(self) -> Iterator[Finding]:
        """Nothing: what is open at the end may be."""
        return iter(())

    def _happens(self, placed: Placed) -> Iterator[Finding]:
        match placed.recorded.event:
            case event if isinstance(event, _STEPS):
                yield from _over(placed, self._turns, event.turn_id)
            case event if isinstance(event, _ANSWERS):
                yield from _over(
                    placed, self._approvals, event.approval_id, self._approvals.discard
                )
            case c.CallbackRearmed(callback_id=callback):
                yield from _over(placed, self._callbacks, callback)
            case event if isinstance(event, _ENDS):
                yield from _over(
                    placed, self._callbacks, event.callback_id, self._callbacks.discard
                )
            case HeartbeatEnqueued(overdue=overdue):
                for callback in overdue:
                    yield from _over(placed, self._callbacks, callback)
            case _:
                pass


def _over(
    placed: Placed, still_open: set[str], name: str, then: Callable[[str], Any] | None = None
) -> Iterator[Finding]:
    if name not in still_open:
        text = f"{name_of(placed.recorded.event)} is about {name}, which is over or never began"
        yield broken(INVARIANT, "changed_when_over", name, placed, text)
    if then is not None:
        then(name)
