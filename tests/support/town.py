"""A town of agents that share sessions, as pure functions.

It makes the transactions of `store/flights` and `store/landing`, out of the same decisions, and
folds them with the same projections. The store's part that matters here is played too: the fence
refuses whoever holds an old epoch, and an end is decided on the rows of its own transaction. A
test chooses what happens.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct

from tests.support.events import BEGAN
from undivided.domain import attention
from undivided.domain.attention import Begin, Carry, Rest, Taken, Wake
from undivided.domain.coordinates import Coordinate
from undivided.domain.dialogue import ToolCall, Usage
from undivided.domain.endings import Ending, fate, stopped_outcome
from undivided.domain.errors import StaleFlight
from undivided.domain.events import flights as f
from undivided.domain.events import people as p
from undivided.domain.events import sessions as s
from undivided.domain.events.catalogue import Event
from undivided.domain.events.items import NoticePosted
from undivided.domain.outcomes import Outcome
from undivided.domain.placed import Placed
from undivided.domain.recorded import Meta, Recorded, agent_stream, session_stream, user_stream
from undivided.domain.state.agent import AgentRow, FlightRow, Idle
from undivided.domain.state.item import ItemRow, Merged, Queued
from undivided.domain.state.session import SessionRow, TurnRow
from undivided.domain.state.view import AgentView
from undivided.domain.turn import TurnState, evolve, idempotency_key, left_open
from undivided.domain.waits import Sleep
from undivided.domain.waking import resolution_of, told_after_wait
from undivided.projections.table import Rows, fold

SEEN = 12
"""How many items a view shows, as in the store."""


class Ledger:
    """The log and its rows; time moves only when it is told to."""

    def __init__(self) -> None:
        self.history: list[Placed] = []
        self.rows: Rows = {}
        self.now: datetime = BEGAN
        self.sessions: dict[str, list[Event]] = {}
        self._versions: dict[str, int] = {}
        self._of_turn: dict[str, str] = {}
        self._txid = self._names = 0

    def name(self, prefix: str) -> str:
        """A fresh name."""
        self._names += 1
        return f"{prefix}_{self._names}"

    def pass_time(self, seconds: float) -> None:
        """Let time go by."""
        self.now += timedelta(seconds=seconds)

    def write(self, *events: Event) -> None:
        """One transaction."""
        self._txid += 1
        placed = [self._placed(event) for event in events]
        fold(self.rows, [one.recorded for one in placed])

    def _placed(self, event: Event) -> Placed:
        if isinstance(event, s.TurnStarted):
            self._of_turn[event.turn_id] = event.session_id
        stream = self._stream(event)
        version = self._versions[stream] = self._versions.get(stream, 0) + 1
        position = len(self.history) + 1
        recorded = Recorded(f"e{position}", stream, version, event, Meta(), self.now)
        self.history.append(Placed(Coordinate(self._txid, position), recorded))
        if stream.startswith("session:"):
            self.sessions.setdefault(stream.removeprefix("session:"), []).append(event)
        return self.history[-1]

    def _stream(self, event: Any) -> str:
        if isinstance(event, NoticePosted) or type(event).__module__ == p.__name__:
            return user_stream(event.user_id)
        if isinstance(event, s.SessionOpened | s.SessionArchived):
            return session_stream(event.session_id)
        if type(event).__module__ == s.__name__:
            return session_stream(self._of_turn[event.turn_id])
        return agent_stream(event.agent_id)

    def agent(self, agent_id: str) -> AgentRow:
        """An agent's row."""
        row: AgentRow = self.rows["agents", agent_id]
        return row

    def items(self, agent_id: str) -> list[ItemRow]:
        """Every item an agent ever accepted."""
        rows = (row for (table, _), row in self.rows.items() if table == "items")
        return [row for row in rows if row.agent_id == agent_id]

    def session(self, session_id: str) -> SessionRow | None:
        """A session's row, if there is one."""
        row: SessionRow | None = self.rows.get(("sessions", session_id))
        return row

    def view(self, agent_id: str) -> AgentView:
        """What a decision reads."""
        agent, flight = self.agent(agent_id), self.rows.get(("flights", agent_id))
        focus = () if isinstance(agent.attention, Idle) else agent.attention.item_ids
        ready = [one for one in self.items(agent_id) if self._eligible(one)]
        ready.sort(key=lambda item: (item.priority, item.seq))
        return AgentView(
            version=self._versions[agent_stream(agent_id)], now=self.now, agent=agent,
            flight=flight, queue=tuple(ready[:SEEN]),
            focus=tuple(self.rows["items", item_id] for item_id in focus),
        )  # fmt: skip

    def joined(self, item: ItemRow) -> tuple[ItemRow, ...]:
        """All that has joined an item, and what had joined that, in order of arrival."""
        joined = [
            one
            for one in self.items(item.agent_id)
            if isinstance(one.phase, Merged) and one.phase.into == item.id
        ]
        family = [*joined, *(other for one in joined for other in self.joined(one))]
        return tuple(sorted(family, key=lambda one: one.seq))

    def joinable(self, agent_id: str) -> dict[str, ItemRow]:
        """What waits and can be joined, by key: the first in the queue."""
        waiting = [one for one in self.items(agent_id) if self._joinable(one)]
        waiting.sort(key=lambda item: (item.priority, item.seq), reverse=True)
        return {str(item.merge_key): item for item in waiting}

    def folded(self, turn_id: str) -> TurnState:
        """A turn as its session's stream tells it, from its first version on."""
        turn: TurnRow = self.rows["turns", turn_id]
        state: TurnState | None = None
        for event in self.sessions[turn.session_id][turn.first_version - 1 :]:
            state = evolve(state, event)
        assert state is not None
        return state

    def fenced(self, hand: Hand, refused: StaleFlight) -> None:
        """It is recorded that a late append was refused."""
        flight: FlightRow = self.rows["flights", hand.agent_id]
        self.write(
            f.FlightFenced(
                agent_id=hand.agent_id, epoch=hand.epoch, current_epoch=flight.epoch, worker="w",
                refused=(refused.code,),
            )
        )  # fmt: skip

    def _joinable(self, item: ItemRow) -> bool:
        held = isinstance(item.phase, Queued) and item.phase.coalescing
        return item.merge_key is not None and (held or self._eligible(item))

    def _eligible(self, item: ItemRow) -> bool:
        phase = item.phase
        if not isinstance(phase, Queued):
            return False
        return phase.not_before is None or phase.not_before <= self.now


class Hand(Struct):
    """A worker's hold on an agent, as it believes to have it: its turn and its epoch."""

    agent_id: str
    epoch: int
    turn: TurnRow
    item_id: str
    state: TurnState


class Town(Ledger):
    """What workers do."""

    def take_off(self, agent_id: str, worker: str = "w") -> Hand | None:
        """Begin what is due for an agent; None if nothing is."""
        view, agent = self.view(agent_id), self.agent(agent_id)
        epoch = view.flight.epoch + 1 if view.flight else 1
        held = view.flight is not None and view.flight.held
        acquired = f.FlightAcquired(
            agent_id=agent_id, epoch=epoch, worker=worker, taken_from=epoch - 1 if held else None
        )
        match attention.what_is_due(view, agent):
            case Rest():
                return None
            case Begin() as begin:
                events, turn_id = self._opening(agent, begin, epoch)
                self.write(acquired, *events)
                return self._hand(agent_id, epoch, turn_id)
            case (Carry() | Wake()) as due:
                self.write(acquired, *self._resuming(agent_id, due, epoch))
                return self._hand(agent_id, epoch, due.turn_id)

    def record(self, hand: Hand, *events: Event) -> None:
        """Record steps in the name of a flight.

        Raises:
            StaleFlight: it is over; nothing was written.
        """
        flight: FlightRow | None = self.rows.get(("flights", hand.agent_id))
        if flight is None or not flight.held or flight.epoch != hand.epoch:
            raise StaleFlight(hand.agent_id, hand.epoch)
        self.write(*events)
        for event in events:
            hand.state = evolve(hand.state, event) or hand.state
        hand.turn = self.rows["turns", hand.turn.id]

    def suspend(self, hand: Hand, call: ToolCall, seconds: float) -> None:
        """The turn waits, and the worker lets go."""
        turn_id, epoch, wait = hand.turn.id, hand.epoch, Sleep(seconds)
        self.record(
            hand,
            f.FocusSuspended(
                agent_id=hand.agent_id, turn_id=turn_id, epoch=epoch, wait=wait, wait_s=seconds
            ),
            f.FlightReleased(agent_id=hand.agent_id, epoch=epoch, reason="suspended"),
            s.TurnSuspended(
                turn_id=turn_id, call_id=call.id, wait=wait, wait_s=seconds, epoch=epoch
            ),
        )

    def leave(self, hand: Hand) -> None:
        """The worker yields."""
        self.record(
            hand,
            f.FlightReleased(agent_id=hand.agent_id, epoch=hand.epoch, reason="yielded"),
            s.TurnYielded(turn_id=hand.turn.id, epoch=hand.epoch),
        )

    def end(
        self, hand: Hand, outcome: Outcome, last: Sequence[s.ModelResponded] = (),
        leaving: bool = False,
    ) -> Hand | None:  # fmt: skip
        """End the turn; answers the hand on the next one, begun in the same transaction."""
        view, agent = self.view(hand.agent_id), self.agent(hand.agent_id)
        self.record(hand)  # the fence comes before any decision
        by = None if isinstance(agent.attention, Idle) else agent.attention.stop_by
        outcome = outcome if by is None else stopped_outcome(by)
        ending = Ending(hand.turn.id, hand.epoch, ((self.name("dec"), self.name("ntf")),))
        item = next(one for one in view.focus if one.id == hand.item_id)
        what = fate(agent, item, outcome, ending)
        ended = _ended(hand, outcome, last)
        steps: tuple[Event, ...] = (*last, *left_open(hand.state, hand.epoch), ended)
        notice: tuple[Event, ...] = (what.notice,) if what.notice else ()
        queue = attention.ready_then(view, [(item, what.event)] if what.retry_now else [], ())
        begin = Rest() if leaving else attention.choose(agent, queue)
        match begin:
            case Rest():
                released = f.FlightReleased(agent_id=agent.id, epoch=hand.epoch, reason="done")
                self.record(hand, what.event, released, *steps, *notice)
                return None
            case Begin():
                events, turn_id = self._opening(agent, begin, hand.epoch, ended)
                self.record(hand, what.event, *steps, *events, *notice)
                return self._hand(agent.id, hand.epoch, turn_id)

    def _opening(
        self, agent: AgentRow, begin: Begin, epoch: int,
        after: s.TurnEnded | s.TurnPreempted | None = None,
    ) -> tuple[tuple[Event, ...], str]:  # fmt: skip
        """The events of a pick; `after` is what ends, or sets aside, the turn before it."""
        assert agent.lifecycle == "started"
        place = (begin.item.priority, begin.item.seq)
        in_order = all(place < (other.priority, other.seq) for other in begin.over)
        assert in_order or begin.rule == "preemptor_first"
        session_id = attention.session_for(agent, begin.item)
        session = self.session(session_id)
        if session is not None and session.agent_id != agent.id:
            session_id = attention.own_session(agent, begin.item)
            session = self.session(session_id)
        if session is not None and session.status != "active":
            session_id = attention.new_session(agent, begin.item)
            session = self.session(session_id)
        turns, responses = (session.next_index, session.responses) if session else (0, 0)
        if after is not None and self._of_turn[after.turn_id] == session_id:
            turns += 1
            responses += after.responses if isinstance(after, s.TurnEnded) else 0
        taken = Taken(self.name("trn"), tuple(self.name("dec") for _ in begin.items), epoch)
        kind = attention.kind_of(begin.item)
        started = s.TurnStarted(
            turn_id=taken.turn_id, session_id=session_id, agent_id=agent.id,
            item_ids=tuple(item.id for item in begin.items), scenario=kind.scenario,
            origin=kind.name, index=turns, responses_before=responses, epoch=epoch,
            input=attention.input_of(begin, {item.id: self.joined(item) for item in begin.items}),
            backstop_s=agent.policy.processing_timeout_s,
        )  # fmt: skip
        opened = s.SessionOpened(session_id=session_id, agent_id=agent.id)
        events: tuple[Event, ...] = (
            *attention.picked(agent, begin, session_id, taken),
            *(() if session else (opened,)),
            started,
        )
        return events, taken.turn_id

    def _resuming(self, agent_id: str, due: Carry | Wake, epoch: int) -> tuple[Event, ...]:
        answers: tuple[Event, ...] = ()
        if isinstance(due, Wake):
            answers = tuple(
                s.ToolCallFinished(
                    turn_id=due.turn_id, call_id=one.call.id, tool=one.call.tool, epoch=epoch,
                    resolution=resolution_of(due),
                    content=told_after_wait(due),
                )
                for one in self.folded(due.turn_id).open
                if one.waiting
            )  # fmt: skip
        regained = f.FocusRegained(
            agent_id=agent_id, turn_id=due.turn_id, epoch=epoch, cause=due.cause
        )
        resumed = s.TurnResumed(turn_id=due.turn_id, cause=due.cause, epoch=epoch)
        return (regained, *answers, resumed)

    def _hand(self, agent_id: str, epoch: int, turn_id: str) -> Hand:
        turn: TurnRow = self.rows["turns", turn_id]
        return Hand(agent_id, epoch, turn, turn.item_ids[0], self.folded(turn_id))


def responded(hand: Hand, text: str, *tools: str) -> s.ModelResponded:
    """The next response of a turn, asking for `tools`."""
    step = hand.state.responses
    calls = tuple(ToolCall(f"{hand.turn.id}.{step}.{n}", tool, {}) for n, tool in enumerate(tools))
    return s.ModelResponded(
        turn_id=hand.turn.id, step=step, text=text, calls=calls, usage=Usage(3, 2, 0, 1),
        model="m", epoch=hand.epoch,
    )  # fmt: skip


def started(hand: Hand, call_id: str, effect: Any) -> s.ToolCallStarted:
    """A call is about to run."""
    return s.ToolCallStarted(
        turn_id=hand.turn.id, call_id=call_id, tool=effect, args={}, effect=effect,
        idempotency_key=idempotency_key(hand.turn.id, call_id), epoch=hand.epoch,
    )  # fmt: skip


def finished(hand: Hand, call_id: str, how: s.Resolution) -> s.ToolCallFinished:
    """A call has its result."""
    tool = next(one.call.tool for one in hand.state.open if one.call.id == call_id)
    return s.ToolCallFinished(
        turn_id=hand.turn.id, call_id=call_id, tool=tool, resolution=how, content="",
        epoch=hand.epoch,
    )  # fmt: skip


def _ended(hand: Hand, outcome: Outcome, last: Sequence[s.ModelResponded]) -> s.TurnEnded:
    usage, state = hand.state.usage, hand.state
    for one in last:
        usage = usage.plus(one.usage)
    return s.TurnEnded(
        turn_id=hand.turn.id, session_id=hand.turn.session_id, agent_id=hand.agent_id,
        item_ids=hand.turn.item_ids, outcome=outcome, usage=usage,
        responses=state.responses + len(last), tool_calls=state.tool_calls, epoch=hand.epoch,
    )  # fmt: skip
