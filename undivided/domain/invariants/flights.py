"""1: at most one live flight an agent; no step, decision or outcome carries a stale epoch."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from undivided.domain.events import flights as f
from undivided.domain.events import items as i
from undivided.domain.events import sessions as s
from undivided.domain.events import triage as t
from undivided.domain.invariants.finding import Finding, Transaction, broken, name_of
from undivided.domain.placed import Placed

INVARIANT = 1

DECIDED_IN_FLIGHT = (
    i.ItemPicked | i.ItemCompleted | i.ItemRequeued | i.ItemDeadLettered
    | i.ItemDeferred | i.ItemResumed | i.ItemWeighed | f.FocusSuspended | f.FocusRegained
    | t.TriageBegan | t.TriageApplied
)  # fmt: skip
STEPS = (
    s.TurnStarted | s.ModelResponded | s.ToolCallStarted | s.ToolCallFinished
    | s.TurnSuspended | s.TurnResumed | s.TurnYielded | s.TurnUpdated | s.TurnNudged
    | s.TurnPreempted | s.DeliberationPlanned | s.TurnEnded
)  # fmt: skip


class _Flight(Struct):
    highest: int = 0
    live: int | None = None


class SingleFlight:
    """Epochs rise by one, and whatever carries an epoch carries that of the live flight.

    A flight that was not released is named by the one that takes over.
    """

    def __init__(self) -> None:
        self._flights: dict[str, _Flight] = {}
        self._agent_of: dict[str, str] = {}

    def transaction(self, events: Transaction) -> Iterator[Finding]:
        """What one append breaks."""
        allowed: dict[str, set[int]] = {}
        for placed in events:
            yield from self._hold(placed, allowed)
        for placed in events:
            yield from self._carries(placed, allowed)
        for placed in events:
            if isinstance(placed.recorded.event, s.TurnEnded):
                self._agent_of.pop(placed.recorded.event.turn_id, None)

    def finish(self) -> Iterator[Finding]:
        """Nothing: a history may end in mid-flight."""
        return iter(())

    def _hold(self, placed: Placed, allowed: dict[str, set[int]]) -> Iterator[Finding]:
        match placed.recorded.event:
            case f.FlightAcquired() as event:
                yield from self._acquired(placed, event)
                allowed[event.agent_id] = {event.epoch}
            case f.FlightReleased() as event:
                flight = self._flights.setdefault(event.agent_id, _Flight())
                allowed.setdefault(event.agent_id, _live(flight))
                if event.epoch != flight.live:
                    text = f"epoch {event.epoch} let go of agent {event.agent_id}, {_held(flight)}"
                    yield broken(INVARIANT, "release_of_other", event.agent_id, placed, text)
                flight.live = None
            case s.TurnStarted() as event:
                self._agent_of[event.turn_id] = event.agent_id
            case _:
                pass

    def _acquired(self, placed: Placed, event: f.FlightAcquired) -> Iterator[Finding]:
        flight = self._flights.setdefault(event.agent_id, _Flight())
        agent = event.agent_id
        if event.epoch != flight.highest + 1:
            text = f"flight {event.epoch} of agent {agent} follows flight {flight.highest}"
            yield broken(INVARIANT, "epoch_not_next", agent, placed, text)
        if event.taken_from != flight.live:
            text = (
                f"flight {event.epoch} took agent {agent} from {_told(event.taken_from)}, "
                f"{_held(flight)}"
            )
            yield broken(INVARIANT, "two_flights", agent, placed, text)
        flight.highest = max(flight.highest, event.epoch)
        flight.live = event.epoch

    def _carries(self, placed: Placed, allowed: dict[str, set[int]]) -> Iterator[Finding]:
        event = placed.recorded.event
        if isinstance(event, DECIDED_IN_FLIGHT):
            agent: str | None = event.agent_id
        elif isinstance(event, STEPS):
            agent = self._agent_of.get(event.turn_id)
            if agent is None:
                text = f"{name_of(event)} of turn {event.turn_id}, which is not open"
                yield broken(INVARIANT, "step_outside_turn", event.turn_id, placed, text)
        else:
            return
        if agent is None:
            return
        flight = self._flights.get(agent, _Flight())
        if event.epoch not in allowed.get(agent, _live(flight)):
            text = f"{name_of(event)} carries epoch {event.epoch} of agent {agent}, {_held(flight)}"
            yield broken(INVARIANT, "stale_epoch", agent, placed, text)


def _live(flight: _Flight) -> set[int]:
    return set() if flight.live is None else {flight.live}


def _told(epoch: int | None) -> str:
    return "nobody" if epoch is None else f"flight {epoch}"


def _held(flight: _Flight) -> str:
    return "which nobody held" if flight.live is None else f"which flight {flight.live} held"
