"""One agent and whoever works for it, as pure functions: no database, no clock, no process.

A `World` makes the transactions that the store makes, out of the same decisions, and folds them
with the same projections. What is left out is what the store adds: locks and refusals. A test
chooses what happens; here is what then is recorded.
"""

from __future__ import annotations

from datetime import timedelta
from functools import reduce
from typing import Any

from tests.support.events import BEGAN
from undivided.domain import agents, attention, mailbox, turn
from undivided.domain.attention import Begin, Carry, Rest, Taken, Wake
from undivided.domain.coordinates import Coordinate
from undivided.domain.dialogue import ToolCall, Usage
from undivided.domain.endings import Ending, fate
from undivided.domain.events import flights as f
from undivided.domain.events import sessions as s
from undivided.domain.events.catalogue import Event
from undivided.domain.events.items import NoticePosted, Payload
from undivided.domain.outcomes import Failed, Outcome
from undivided.domain.placed import Placed
from undivided.domain.policy import DEFAULT_POLICY, adopt
from undivided.domain.recorded import Meta, Recorded, agent_stream, session_stream, user_stream
from undivided.domain.state.agent import AgentRow, Focused, Idle
from undivided.domain.state.item import ItemRow, Queued
from undivided.domain.state.view import AgentView
from undivided.domain.tooling import Effect
from undivided.domain.waits import Sleep
from undivided.projections.table import Rows, fold

AGENT = "ada"


class World:
    """`epoch` is that of the flight which a living worker holds; None if nobody works."""

    def __init__(self, **policy: Any) -> None:
        self.rows: Rows = {}
        self.history: list[Placed] = []
        self.now = BEGAN
        self.epoch: int | None = None
        self.sessions: dict[str, list[Event]] = {}
        self._versions: dict[str, int] = {}
        self._txid = self._names = 0
        command = agents.CreateAgent(agent_id=AGENT, name="Ada", policy=policy)
        self.write(*agents.create(adopt(DEFAULT_POLICY, {}), command))

    @property
    def agent(self) -> AgentRow:
        row: AgentRow = self.rows["agents", AGENT]
        return row

    @property
    def items(self) -> list[ItemRow]:
        return [row for (table, _), row in self.rows.items() if table == "items"]

    @property
    def waiting(self) -> list[ItemRow]:
        """The items that may be picked now."""
        return [
            one
            for one in self.items
            if isinstance(one.phase, Queued)
            and (one.phase.not_before is None or one.phase.not_before <= self.now)
        ]

    @property
    def view(self) -> AgentView:
        focus = () if isinstance(self.agent.attention, Idle) else self.agent.attention.item_ids
        return AgentView(
            version=self._versions[agent_stream(AGENT)], now=self.now, agent=self.agent,
            flight=self.rows.get(("flights", AGENT)), queue=tuple(self.waiting),
            focus=tuple(self.rows["items", one] for one in focus),
        )  # fmt: skip

    @property
    def state(self) -> turn.TurnState:
        """The turn in focus, folded from its steps."""
        focus = self.agent.attention
        assert isinstance(focus, Focused)
        return self._folded(focus.session_id, focus.turn_id)

    def write(self, *events: Event) -> None:
        """One transaction."""
        self._txid += 1
        recorded: list[Recorded] = []
        for event in events:
            stream = self._stream(event)
            self._versions[stream] = version = self._versions.get(stream, 0) + 1
            name = f"e{len(self.history) + len(recorded)}"
            recorded.append(Recorded(name, stream, version, event, Meta(), self.now))
            if stream.startswith("session:"):
                self.sessions.setdefault(stream.partition(":")[2], []).append(event)
        self.history += [
            Placed(Coordinate(self._txid, len(self.history) + n), one)
            for n, one in enumerate(recorded, start=1)
        ]
        fold(self.rows, recorded)

    def pass_time(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def accept(self, kind: str, priority: int | None) -> None:
        name = self._name("mbx")
        command = mailbox.Accept(
            item_id=name, source_type=kind, payload=Payload(f"<{name}>"), priority=priority
        )
        self.write(*mailbox.accept(self.agent, (command,)))

    def attend(self) -> None:
        """A worker takes the agent: from nobody, from the dead, or from one that was frozen."""
        due = attention.what_is_due(self.view, self.agent)
        flight = self.view.flight
        epoch = flight.epoch + 1 if flight else 1
        acquired = f.FlightAcquired(
            agent_id=AGENT, epoch=epoch, worker="wrk",
            taken_from=epoch - 1 if flight and flight.held else None,
        )  # fmt: skip
        match due:
            case Rest():
                return
            case Begin():
                self.write(acquired, *self._opening(due, epoch))
            case Carry() | Wake():
                self.write(acquired, *self._resuming(due, epoch))
        self.epoch = epoch

    def respond(self, text: str, *effects: Effect) -> None:
        """The model answers; its calls are of these effects. Without calls the turn ends."""
        state, epoch = self.state, self._held()
        step = state.responses
        calls = tuple(
            ToolCall(f"{state.begun.turn_id}.{step}.{n}", effect, {})
            for n, effect in enumerate(effects)
        )
        said = s.ModelResponded(
            turn_id=state.begun.turn_id, step=step, text=text, calls=calls,
            usage=Usage(1, 1, 0, 1), model="m", epoch=epoch,
        )  # fmt: skip
        self.write(said)

    def start_call(self, call: ToolCall, effect: Effect) -> None:
        turn_id = self.state.begun.turn_id
        self.write(
            s.ToolCallStarted(
                turn_id=turn_id, call_id=call.id, tool=call.tool, args={}, effect=effect,
                idempotency_key=turn.idempotency_key(turn_id, call.id), epoch=self._held(),
            )
        )  # fmt: skip

    def finish_call(self, call: ToolCall, resolution: s.Resolution) -> None:
        self.write(self._finished(self.state.begun.turn_id, call, resolution, self._held()))

    def suspend(self, call: ToolCall, seconds: float) -> None:
        turn_id, epoch, wait = self.state.begun.turn_id, self._held(), Sleep(seconds)
        self.write(
            f.FocusSuspended(
                agent_id=AGENT, turn_id=turn_id, epoch=epoch, wait=wait, wait_s=seconds
            ),
            f.FlightReleased(agent_id=AGENT, epoch=epoch, reason="suspended"),
            s.TurnSuspended(
                turn_id=turn_id, call_id=call.id, wait=wait, wait_s=seconds, epoch=epoch
            ),
        )
        self.epoch = None

    def leave(self) -> None:
        epoch = self._held()
        self.write(
            f.FlightReleased(agent_id=AGENT, epoch=epoch, reason="yielded"),
            s.TurnYielded(turn_id=self.state.begun.turn_id, epoch=epoch),
        )
        self.epoch = None

    def die(self) -> None:
        self.epoch = None

    def ask_to_stop(self, by: str) -> None:
        self.write(*agents.request_stop(self.agent, by))

    def end(self, outcome: Outcome, leaving: bool = False) -> None:
        """The turn ends, and the next one begins in the same transaction if one is due."""
        state, epoch = self.state, self._held()
        begun = state.begun
        ending = Ending(begun.turn_id, epoch, self._name("dec"), self._name("ntf"))
        item: ItemRow = self.rows["items", begun.item_ids[0]]
        what = fate(self.agent, item, outcome, ending)
        steps: tuple[Event, ...] = (
            *turn.left_open(state, epoch), self._ended(state, outcome, epoch),
        )  # fmt: skip
        notice: tuple[Event, ...] = (what.notice,) if what.notice else ()
        queue = tuple(self.waiting)
        if what.retry_now:
            queue = (*queue, attention.as_requeued(item, what.event))
        due = Rest() if leaving else attention.choose(self.agent, queue)
        match due:
            case Rest():
                released = f.FlightReleased(agent_id=AGENT, epoch=epoch, reason="done")
                self.write(what.event, released, *steps, *notice)
                self.epoch = None
            case Begin():
                self.write(what.event, *steps, *self._opening(due, epoch), *notice)

    def lost_too_often(self) -> Failed | None:
        """How a turn ends that nobody survives."""
        focus = self.agent.attention
        assert isinstance(focus, Focused)
        orphaned = self.rows["turns", focus.turn_id].orphaned
        too_often = orphaned >= self.agent.policy.max_delivery_attempts
        return Failed("flight_lost", "", retryable=False) if too_often else None

    def _opening(self, begin: Begin, epoch: int) -> tuple[Event, ...]:
        session_id = attention.session_for(self.agent, begin.item)
        taken = Taken(self._name("trn"), self._name("dec"), epoch)
        kind = attention.kind_of(begin.item)
        started = s.TurnStarted(
            turn_id=taken.turn_id, session_id=session_id, agent_id=AGENT,
            item_ids=(begin.item.id,), scenario=kind.scenario, origin=kind.name, index=0,
            responses_before=0, input=attention.input_of(begin.item), epoch=epoch, backstop_s=60,
        )  # fmt: skip
        opened = s.SessionOpened(session_id=session_id, agent_id=AGENT)
        new: tuple[Event, ...] = () if session_id in self.sessions else (opened,)
        return (attention.picked(self.agent, begin, session_id, taken), *new, started)

    def _resuming(self, due: Carry | Wake, epoch: int) -> tuple[Event, ...]:
        regained = f.FocusRegained(
            agent_id=AGENT, turn_id=due.turn_id, epoch=epoch, cause=due.cause
        )
        resumed = s.TurnResumed(turn_id=due.turn_id, cause=due.cause, epoch=epoch)
        answers: tuple[Event, ...] = ()
        if isinstance(due, Wake):
            answers = tuple(
                self._finished(due.turn_id, one.call, attention.resolution_of(due), epoch)
                for one in self._folded(due.session_id, due.turn_id).open
                if one.waiting
            )
        return (regained, *answers, resumed)

    def _folded(self, session_id: str, turn_id: str) -> turn.TurnState:
        nothing: turn.TurnState | None = None
        steps = [one for one in self.sessions[session_id] if getattr(one, "turn_id", "") == turn_id]
        state = reduce(turn.evolve, steps, nothing)
        assert state is not None
        return state

    def _finished(
        self, turn_id: str, call: ToolCall, resolution: s.Resolution, epoch: int
    ) -> s.ToolCallFinished:
        return s.ToolCallFinished(
            turn_id=turn_id, call_id=call.id, tool=call.tool, resolution=resolution, content="",
            epoch=epoch,
        )  # fmt: skip

    def _ended(self, state: turn.TurnState, outcome: Outcome, epoch: int) -> s.TurnEnded:
        begun = state.begun
        return s.TurnEnded(
            turn_id=begun.turn_id, session_id=begun.session_id, agent_id=AGENT,
            item_ids=begun.item_ids, outcome=outcome, usage=state.usage,
            responses=state.responses, tool_calls=state.tool_calls, epoch=epoch,
        )  # fmt: skip

    def _held(self) -> int:
        assert self.epoch is not None
        return self.epoch

    def _name(self, prefix: str) -> str:
        self._names += 1
        return f"{prefix}_{self._names}"

    def _stream(self, event: Event) -> str:
        if isinstance(event, NoticePosted):
            return user_stream(event.user_id)
        if type(event).__module__ != s.__name__:
            return agent_stream(AGENT)
        session = getattr(event, "session_id", None)
        if session is not None:
            return session_stream(session)
        turn_id = getattr(event, "turn_id", "")
        return session_stream(self.rows["turns", turn_id].session_id)
