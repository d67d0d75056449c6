"""An opening: a turn that is about to be started, in the session that it belongs to."""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from undivided.domain import attention
from undivided.domain.attention import Begin, Taken
from undivided.domain.errors import Corrupt
from undivided.domain.events import sessions as s
from undivided.domain.events.catalogue import Event
from undivided.domain.events.items import ItemPicked
from undivided.domain.recorded import Meta, session_stream
from undivided.domain.state.agent import AgentRow
from undivided.domain.state.item import ItemRow
from undivided.domain.state.session import SessionRow
from undivided.domain.state.view import AgentView
from undivided.domain.turn import evolve
from undivided.store.flights import Flight, meta_of
from undivided.store.fresh import fresh_id
from undivided.store.log import Addition, AgentTx, Appended


class Opening(Struct, kw_only=True):
    """A turn about to be started: the pick, and the session it belongs to.

    `base` are events that go before it in the same stream and the same transaction.
    """

    agent: AgentRow
    begin: Begin
    told: str
    picked: tuple[ItemPicked, ...]
    session: SessionRow | None
    session_id: str
    version: int
    turns: int
    responses: int

    @classmethod
    async def of(cls, tx: AgentTx, begin: Begin, epoch: int) -> Opening:
        """Choose the session, read where it stands, and what has joined the items."""
        session_id = attention.session_for(tx.agent, begin.item)
        session = await tx.session(session_id)
        if session.row is not None and session.row.agent_id != tx.agent.id:
            session_id = attention.own_session(tx.agent, begin.item)
            session = await tx.session(session_id)
        if session.row is not None and session.row.status != "active":
            session_id = attention.new_session(tx.agent, begin.item)
            session = await tx.session(session_id)
        names = tuple(fresh_id("dec") for _ in begin.items)
        taken = Taken(fresh_id("trn"), names, epoch)
        return cls(
            agent=tx.agent,
            begin=begin,
            told=await _told(tx, begin),
            picked=attention.picked(tx.agent, begin, session_id, taken),
            session=session.row,
            session_id=session_id,
            version=session.version,
            turns=session.row.next_index if session.row else 0,
            responses=session.row.responses if session.row else 0,
        )

    def behind(self, addition: Addition) -> None:
        """Something else is written to the session first, in the same append."""
        if addition.stream == session_stream(self.session_id):
            self.version += len(addition.events)

    @property
    def meta(self) -> Meta:
        """Cause and story of the turn."""
        return meta_of(self.agent, self.begin.item)

    @property
    def known(self) -> dict[tuple[str, str], Any]:
        """The session's row, where it exists."""
        return {("sessions", self.session_id): self.session} if self.session else {}

    def events(self) -> tuple[Event, ...]:
        """What the session's stream gets."""
        kind, first = attention.kind_of(self.begin.item), self.picked[0]
        started = s.TurnStarted(
            turn_id=first.turn_id,
            session_id=self.session_id,
            agent_id=self.agent.id,
            item_ids=tuple(item.id for item in self.begin.items),
            scenario=kind.scenario,
            origin=kind.name,
            index=self.turns,
            responses_before=self.responses,
            input=self.told,
            epoch=first.epoch,
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
        turn_id = self.picked[0].turn_id
        started = next(r for r in appended.events if isinstance(r.event, s.TurnStarted))
        state = evolve(None, started.event)
        if state is None:
            raise Corrupt("a started turn has no state")
        rows = appended.rows
        items = tuple(rows["items", item.id] for item in self.begin.items)
        return Flight(
            agent=rows["agents", self.agent.id],
            epoch=self.picked[0].epoch,
            items=items,
            session=rows["sessions", self.session_id],
            turn=rows["turns", turn_id],
            activity=rows["activities", turn_id],
            state=state,
            version=started.version,
            edition=tx.view.edition,
            remembered=_remembered(tx, appended, items),
        )


def _remembered(tx: AgentTx, appended: Appended, focus: tuple[ItemRow, ...]) -> AgentView | None:
    """The view as the flight left it; None if it does not show what comes next.

    What waits and is not in it is more than was seen, of unknown types, or put off: whether any
    of that is due by then, only another look can tell.
    """
    view = replace(tx.view_after(appended), focus=focus)
    if view.agent is None or view.agent.deferred > 0:
        return None
    if view.agent.waiting == 0 or attention.ready(view.queue, view.now):
        return view
    return None


async def _told(tx: AgentTx, begin: Begin) -> str:
    """What the turn is told: its item and what has joined it, or all the items of a batch."""
    joined = {item.id: await tx.joined(item) for item in begin.items}
    return attention.input_of(begin, joined)
