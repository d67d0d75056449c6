"""A flight: one worker's hold on one agent, and the transaction that begins it.

Each transaction of a flight is one append that happens whole or not at all, so that the
process may die between any two of them: what is recorded is where the next worker goes on.
Every append names the flight's epoch (see `log.py`).
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from undivided.domain import attention
from undivided.domain.attention import Begin, Carry, Rest, Taken, Wake
from undivided.domain.errors import Conflict, Corrupt
from undivided.domain.events import flights as f
from undivided.domain.events import sessions as s
from undivided.domain.events.catalogue import Event
from undivided.domain.recorded import Meta, session_stream
from undivided.domain.state.agent import AgentRow, Suspended
from undivided.domain.state.item import ItemRow
from undivided.domain.state.session import SessionRow, TurnRow
from undivided.domain.state.view import AgentView
from undivided.domain.stimuli import REGISTRY
from undivided.domain.turn import TurnState, evolve
from undivided.store.fresh import fresh_id
from undivided.store.log import Addition, AgentTx, Appended, Fence, Log
from undivided.store.steps import turn_state

QUEUE_SEEN = 12
"""How many eligible items a decision looks at: the winner and the losers it names."""


class Flight(Struct, kw_only=True):
    """What a worker knows of the turn it drives; always what it last committed.

    `version` is that of the session's stream, which only this flight writes.
    """

    agent: AgentRow
    epoch: int
    item: ItemRow
    session: SessionRow
    turn: TurnRow
    state: TurnState
    version: int
    edition: int
    activity: Any | None = None
    remembered: AgentView | None = None
    """The agent as this flight left it, unless it has appended to the agent's stream since."""

    @property
    def fence(self) -> Fence:
        """The name in which this flight appends."""
        return Fence(self.agent.id, self.epoch)

    @property
    def meta(self) -> Meta:
        """Cause and story of everything this turn records."""
        return Meta(
            actor=f"agent:{self.agent.id}",
            causation=self.item.accepted_by,
            correlation=self.item.correlation,
        )

    def known(self, edition: int) -> dict[tuple[str, str], Any]:
        """Rows that nobody else can have changed since, unless rows were made anew."""
        if edition != self.edition:
            return {}
        rows: dict[tuple[str, str], Any] = {
            ("sessions", self.session.id): self.session,
            ("turns", self.turn.id): self.turn,
        }
        if self.activity is not None:
            rows["activities", self.turn.id] = self.activity
        return rows

    def session_events(self, *events: Event) -> Addition:
        """`events` for this flight's session."""
        return Addition(session_stream(self.session.id), self.version, events)

    def advance(self, appended: Appended) -> None:
        """Take over what was committed to this flight's session."""
        stream = session_stream(self.session.id)
        for recorded in appended.events:
            if recorded.stream == stream:
                self.version = recorded.version
                state = evolve(self.state, recorded.event)
                self.state = self.state if state is None else state
        self.turn = appended.rows.get(("turns", self.turn.id), self.turn)
        self.session = appended.rows.get(("sessions", self.session.id), self.session)


async def take_off(log: Log, agent_id: str, worker: str) -> Flight | None:
    """Begin what is due for an agent whose lock this worker holds; None if nothing is.

    Raises:
        NotFound, Unavailable: nothing was begun.
    """
    try:
        async with log.unlocked(agent_id, QUEUE_SEEN, attention.chat_session(agent_id)) as tx:
            return await _take_off(tx, worker)
    except Conflict:  # the agent moved on in this very moment: now in line with the others
        async with log.locked(agent_id, QUEUE_SEEN) as tx:
            return await _take_off(tx, worker)


async def _take_off(tx: AgentTx, worker: str) -> Flight | None:
    due = attention.what_is_due(await with_known_types(tx), tx.agent)
    epoch = tx.view.flight.epoch + 1 if tx.view.flight else 1
    held = tx.view.flight is not None and tx.view.flight.held
    acquired = f.FlightAcquired(
        agent_id=tx.agent.id, epoch=epoch, worker=worker, taken_from=epoch - 1 if held else None
    )
    match due:
        case Rest():
            return None
        case Begin():
            opening = await Opening.of(tx, due, epoch)
            appended = await tx.append(
                [tx.addition(acquired, opening.picked), opening.session_addition()],
                opening.meta,
                known=opening.known,
            )
            return opening.flight(tx, appended)
        case Carry() | Wake():
            return await _resume(tx, due, acquired)


async def with_known_types(tx: AgentTx) -> AgentView:
    """The view, with the best items that can matter even if a whole view of others comes first.

    Others are those of types that only a newer release knows and, while the agent waits, those
    that do not wake it.
    """
    waits = isinstance(tx.agent.attention, Suspended)
    types = [kind.name for kind in REGISTRY.values() if kind.wakes or not waits]
    queue = tx.view.queue
    if not tx.view.more or any(item.source_type in types for item in queue):
        return tx.view
    return replace(tx.view, queue=await tx.waiting(types, QUEUE_SEEN))


class Opening(Struct, kw_only=True):
    """A turn about to be started: the pick, and the session it belongs to.

    `base` are events that go before it in the same stream and the same transaction.
    """

    agent: AgentRow
    item: ItemRow
    picked: Any
    session: SessionRow | None
    session_id: str
    version: int
    turns: int
    responses: int

    @classmethod
    async def of(cls, tx: AgentTx, begin: Begin, epoch: int) -> Opening:
        """Choose the session and read where it stands."""
        session_id = attention.session_for(tx.agent, begin.item)
        session = await tx.session(session_id)
        if session.row is not None and session.row.agent_id != tx.agent.id:
            session_id = attention.own_session(tx.agent, begin.item)
            session = await tx.session(session_id)
        if session.row is not None and session.row.status != "active":
            session_id = attention.new_session(tx.agent, begin.item)
            session = await tx.session(session_id)
        taken = Taken(fresh_id("trn"), fresh_id("dec"), epoch)
        return cls(
            agent=tx.agent,
            item=begin.item,
            picked=attention.picked(tx.agent, begin, session_id, taken),
            session=session.row,
            session_id=session_id,
            version=session.version,
            turns=session.row.turns if session.row else 0,
            responses=session.row.responses if session.row else 0,
        )

    @property
    def meta(self) -> Meta:
        """Cause and story of the turn."""
        return Meta(
            actor=f"agent:{self.agent.id}",
            causation=self.item.accepted_by,
            correlation=self.item.correlation,
        )

    @property
    def known(self) -> dict[tuple[str, str], Any]:
        """The session's row, where it exists."""
        return {("sessions", self.session_id): self.session} if self.session else {}

    def events(self) -> tuple[Event, ...]:
        """What the session's stream gets."""
        kind = attention.kind_of(self.item)
        started = s.TurnStarted(
            turn_id=self.picked.turn_id,
            session_id=self.session_id,
            agent_id=self.agent.id,
            item_ids=(self.item.id,),
            scenario=kind.scenario,
            origin=kind.name,
            index=self.turns,
            responses_before=self.responses,
            input=attention.input_of(self.item),
            epoch=self.picked.epoch,
            backstop_s=self.agent.policy.processing_timeout_s,
        )
        if self.session is not None:
            return (started,)
        return (s.SessionOpened(session_id=self.session_id, agent_id=self.agent.id), started)

    def session_addition(self) -> Addition:
        """The session's part of the append."""
        return Addition(session_stream(self.session_id), self.version, self.events(), self.meta)

    def flight(self, tx: AgentTx, appended: Appended) -> Flight:
        """The flight, once all of it is committed by `tx`."""
        turn_id = self.picked.turn_id
        started = next(r for r in appended.events if isinstance(r.event, s.TurnStarted))
        state = evolve(None, started.event)
        if state is None:
            raise Corrupt("a started turn has no state")
        rows = appended.rows
        item = rows["items", self.item.id]
        return Flight(
            agent=rows["agents", self.agent.id],
            epoch=self.picked.epoch,
            item=item,
            session=rows["sessions", self.session_id],
            turn=rows["turns", turn_id],
            activity=rows["activities", turn_id],
            state=state,
            version=started.version,
            edition=tx.view.edition,
            remembered=_remembered(tx, appended, item),
        )


def _remembered(tx: AgentTx, appended: Appended, focus: ItemRow) -> AgentView | None:
    """The view as the flight left it; None if it does not show what comes next.

    What waits and is not in it is more than was seen, of unknown types, or put off: whether any
    of that is due by then, only another look can tell.
    """
    view = replace(tx.view_after(appended), focus=(focus,))
    nothing_waits = view.agent is not None and view.agent.waiting == 0
    return view if nothing_waits or attention.known_only(view.queue) else None


async def _resume(tx: AgentTx, due: Carry | Wake, acquired: f.FlightAcquired) -> Flight:
    turn: TurnRow | None = await tx.row("turns", due.turn_id)
    session: SessionRow | None = await tx.row("sessions", due.session_id)
    if turn is None or session is None or not tx.view.focus:
        raise Corrupt(f"agent {tx.agent.id} is focused on turn {due.turn_id}, which has no rows")
    state, version = await turn_state(tx.connection, turn)
    flight = Flight(
        agent=tx.agent, epoch=acquired.epoch, item=tx.view.focus[0], session=session, turn=turn,
        state=state, version=version, edition=tx.view.edition,
        activity=await tx.row("activities", turn.id),
    )  # fmt: skip
    regained = f.FocusRegained(
        agent_id=tx.agent.id, turn_id=turn.id, epoch=acquired.epoch, cause=due.cause
    )
    resumed = s.TurnResumed(turn_id=turn.id, cause=due.cause, epoch=acquired.epoch)
    ended = _end_of_wait(due, state, acquired.epoch) if isinstance(due, Wake) else ()
    appended = await tx.append(
        [tx.addition(acquired, regained), flight.session_events(*ended, resumed)],
        flight.meta,
        known=flight.known(tx.view.edition),
    )
    flight.agent = appended.rows["agents", tx.agent.id]
    flight.advance(appended)
    return flight


def _end_of_wait(wake: Wake, state: TurnState, epoch: int) -> tuple[Event, ...]:
    """The result of the call that waited, if it still does."""
    return tuple(
        s.ToolCallFinished(
            turn_id=wake.turn_id,
            call_id=waiting.call.id,
            tool=waiting.call.tool,
            resolution=attention.resolution_of(wake),
            content=attention.told_after_wait(wake),
            epoch=epoch,
        )
        for waiting in state.open
        if waiting.waiting
    )
