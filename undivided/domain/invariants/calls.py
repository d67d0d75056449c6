"""5: every tool call id has exactly one result; a `once` tool was started at most once."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from undivided.domain.events import sessions as s
from undivided.domain.invariants.finding import Finding, Transaction, broken
from undivided.domain.placed import Placed

INVARIANT = 5


class _Call(Struct):
    starts: int = 0
    answered: bool = False


class OneResultACall:
    """What a model asked for is started, run again only if its effect allows, answered once.

    A call may be open only as long as its turn is.
    """

    def __init__(self) -> None:
        self._turns: dict[str, dict[str, _Call]] = {}

    def transaction(self, events: Transaction) -> Iterator[Finding]:
        """What one append does to calls that they do not allow."""
        for placed in events:
            match placed.recorded.event:
                case s.TurnStarted(turn_id=turn):
                    self._turns[turn] = {}
                case s.ModelResponded() as event if event.turn_id in self._turns:
                    yield from self._asked(placed, event)
                case s.ToolCallStarted() as event if event.turn_id in self._turns:
                    yield from self._started(placed, event)
                case s.ToolCallFinished() as event if event.turn_id in self._turns:
                    yield from self._finished(placed, event)
                case _:
                    pass
        for placed in events:
            if isinstance(placed.recorded.event, s.TurnEnded):
                yield from self._ended(placed, placed.recorded.event)

    def finish(self) -> Iterator[Finding]:
        """Nothing: calls of turns that are still open may be open."""
        return iter(())

    def _asked(self, placed: Placed, event: s.ModelResponded) -> Iterator[Finding]:
        calls = self._turns[event.turn_id]
        for call in event.calls:
            if call.id in calls:
                text = f"call {call.id} is asked for a second time in turn {event.turn_id}"
                yield broken(INVARIANT, "call_asked_twice", call.id, placed, text)
            calls.setdefault(call.id, _Call())

    def _started(self, placed: Placed, event: s.ToolCallStarted) -> Iterator[Finding]:
        call = self._turns[event.turn_id].get(event.call_id)
        if call is None:
            yield _never_asked(placed, event)
            return
        call.starts += 1
        if call.answered:
            text = f"call {event.call_id} is started although it has its result"
            yield broken(INVARIANT, "started_after_result", event.call_id, placed, text)
        if event.effect == "once" and call.starts > 1:
            text = f"{event.tool}, which may run only once, is started again by {event.call_id}"
            yield broken(INVARIANT, "once_started_again", event.call_id, placed, text)

    def _finished(self, placed: Placed, event: s.ToolCallFinished) -> Iterator[Finding]:
        call = self._turns[event.turn_id].get(event.call_id)
        if call is None:
            yield _never_asked(placed, event)
            return
        if call.answered:
            text = f"call {event.call_id} gets a second result"
            yield broken(INVARIANT, "second_result", event.call_id, placed, text)
        call.answered = True

    def _ended(self, placed: Placed, event: s.TurnEnded) -> Iterator[Finding]:
        for call_id, call in self._turns.pop(event.turn_id, {}).items():
            if not call.answered:
                text = f"turn {event.turn_id} ended and call {call_id} never got a result"
                yield broken(INVARIANT, "result_missing", call_id, placed, text)


def _never_asked(placed: Placed, event: s.ToolCallStarted | s.ToolCallFinished) -> Finding:
    text = f"no response of turn {event.turn_id} asked for call {event.call_id}"
    return broken(INVARIANT, "call_never_asked", event.call_id, placed, text)
