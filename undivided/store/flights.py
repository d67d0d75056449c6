"""A flight: one worker's hold on one agent.

Each transaction of a flight is one append that happens whole or not at all, so that the
process may die between any two of them: what is recorded is where the next worker goes on.
Every append names the flight's epoch (see `log.py`).
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from undivided.domain.events.catalogue import Event
from undivided.domain.recorded import Meta, session_stream
from undivided.domain.state.agent import AgentRow, Suspended
from undivided.domain.state.item import ItemRow
from undivided.domain.state.session import SessionRow, TurnRow
from undivided.domain.state.view import AgentView
from undivided.domain.stimuli import REGISTRY
from undivided.domain.turn import TurnState, evolve
from undivided.store.log import Addition, AgentTx, Appended, Fence

QUEUE_SEEN = 12
"""How many eligible items a decision looks at: the winner and the losers it names."""


class Flight(Struct, kw_only=True):
    """What a worker knows of the turn it drives; always what it last committed.

    `version` is that of the session's stream, which only this flight writes.
    """

    agent: AgentRow
    epoch: int
    items: tuple[ItemRow, ...]
    session: SessionRow
    turn: TurnRow
    state: TurnState
    version: int
    edition: int
    activity: Any | None = None
    remembered: AgentView | None = None
    """The agent as this flight left it, unless it has appended to the agent's stream since."""
    considered: tuple[ItemRow, ...] = ()
    """In a deliberation, which has no items of its own: what it began with, the head first."""

    @property
    def item(self) -> ItemRow:
        """The item that the turn is about; a batch has siblings behind it.

        For a deliberation it is the head: what would have been picked without it.
        """
        return self.items[0] if self.items else self.considered[0]

    @property
    def deliberates(self) -> bool:
        """Whether the turn only considers what waits."""
        return bool(self.considered)

    @property
    def fence(self) -> Fence:
        """The name in which this flight appends."""
        return Fence(self.agent.id, self.epoch)

    @property
    def meta(self) -> Meta:
        """Cause and story of everything this turn records."""
        return meta_of(self.agent, self.item)

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


def meta_of(agent: AgentRow, item: ItemRow) -> Meta:
    """Cause and story of what an agent does about an item."""
    return Meta(actor=f"agent:{agent.id}", causation=item.accepted_by, correlation=item.correlation)


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
