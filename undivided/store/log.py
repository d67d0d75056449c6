"""Append and fold: the only way into the log.

An append takes events for one or more streams, each with the version it expects, folds them
into the rows they touch, and writes both in one message. Why nothing can go wrong between the
fold and the write:

- A row is folded only from events of one stream (see `projections/`). If the stream is still
  at the expected version, no other event can have reached the row since it was read, whenever
  that was. Rows that were made anew meanwhile (a rebuild, a repair) have another edition, and
  what was read of the old one is refused.
- So there are two ways to append. `Log.unlocked` and `Log.recalled` go by a view without a lock and
  are refused if the agent has moved on: one round trip, for whoever is most likely alone.
  `Log.locked` takes the lock of the agent's stream before it reads, so that producers of a busy
  stream queue instead of colliding. Whoever is refused on the first way takes the second.
- A transaction that writes streams of others besides names them first (`also`), and all are
  locked in the order of their names; the flight comes after the streams. Of a session's stream
  there is one writer at a time: the flight that holds the agent, or, while none does, whoever
  holds the agent's lock. One fixed order, no deadlock. `functions.py` says why these locks come
  before any row. An append that takes no lock beforehand may wait for a stream with its id in
  hand; every version that it expects was committed before, so that it is refused if anybody
  wrote there while it waited.
- A flight's append names its epoch. The statement share-locks the flight's row at that epoch;
  raising an epoch updates the row. Whichever comes first, a stale epoch never commits.

Streams stay correct when the process dies at any point: before COMMIT nothing is there, after
it everything is.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime

from undivided.domain.errors import NotFound
from undivided.domain.recorded import Meta, agent_stream
from undivided.domain.state.view import AgentView
from undivided.store.agent_tx import AgentTx
from undivided.store.batch import Addition, Fence, Guards, folded_from, number, step_call, written
from undivided.store.database import Database
from undivided.store.exchange import BEGIN, Call, Statement, exchange, text_array
from undivided.store.looks import session_call, session_in, view_call, view_in
from undivided.store.memory import Memory
from undivided.store.sending import Appended, appended, send

__all__ = ["Addition", "AgentTx", "Appended", "Fence", "Log"]

_LOCK_STREAMS = Statement(b"undivided_lock_streams", b"SELECT lock_streams($1, $2)")


class Log:
    """The append side of one database. `memory`: agents as this process last left them."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.memory = Memory()

    async def append(
        self, additions: Sequence[Addition], meta: Meta, fence: Fence | None = None
    ) -> Appended:
        """Append in one round trip. For events whose rows begin with them, or touch none.

        Raises:
            Conflict: a stream is not at the expected version.
            StaleFlight: `fence` names an epoch that is over.
            Unavailable: Postgres cannot be reached; whether it was written is then unknown.
        """
        database = self.database
        folded = folded_from({}, number(additions, meta, await self._now()))
        step = step_call(database.tenant, folded, fence)
        async with database.connection() as connection:
            if step is not None:
                (result,) = await exchange(connection, step)
                if result.ntuples:
                    return appended(database, result, folded.events, folded.rows)
            guards = Guards(fence)
            write = written(database.tenant, additions, folded, guards)
            return await send(database, connection, write, guards)

    @asynccontextmanager
    async def locked(
        self, agent_id: str, queue: int = 0, also: tuple[str, ...] = ()
    ) -> AsyncIterator[AgentTx]:
        """Take the agent's row lock and read its view; leaving without an append changes nothing.

        `queue`: how many eligible items the view brings; 0 leaves queue, focus and flight out,
        and is for whoever does not append in the name of a flight. `also`: streams that others
        write too and that this transaction may append to.

        Raises:
            NotFound: there is no such agent.
        """
        database = self.database
        async with database.connection() as connection:
            looking = view_call(database.tenant, agent_id, queue, lock=True)
            locking = self._locking(agent_stream(agent_id), *also) if also else ()
            results = await exchange(connection, BEGIN, *locking, looking)
            view = _known(view_in(results[-1], queue), agent_id)
            database.clock.heard(view.now)
            yield AgentTx(database, connection, view, queue, "locked", also)

    @asynccontextmanager
    async def unlocked(self, agent_id: str, queue: int, session_id: str) -> AsyncIterator[AgentTx]:
        """Read the agent's view without a lock, and a session along with it.

        An append is refused with `Conflict` if the agent has moved on since.

        Raises:
            NotFound: there is no such agent.
        """
        database = self.database
        async with database.connection() as connection:
            looking = view_call(database.tenant, agent_id, queue, lock=False)
            session = session_call(database.tenant, session_id)
            results = await exchange(connection, looking, session)
            view = _known(view_in(results[0], queue), agent_id)
            database.clock.heard(view.now)
            tx = AgentTx(database, connection, view, queue, "unlocked")
            tx.knows(session_id, session_in(results[1]))
            yield tx

    @asynccontextmanager
    async def recalled(self, view: AgentView, queue: int = 0) -> AsyncIterator[AgentTx]:
        """Go by a view that is remembered; an append is refused with `Conflict` if it is old."""
        async with self.database.connection() as connection:
            yield AgentTx(self.database, connection, view, queue, "unlocked")

    async def view(self, agent_id: str, queue: int = 0) -> AgentView:
        """The agent's view without a lock, for reading only; `agent` is None if unknown."""
        looking = view_call(self.database.tenant, agent_id, queue, lock=False)
        async with self.database.connection() as connection:
            (result,) = await exchange(connection, looking)
        return view_in(result, queue)

    def _locking(self, *streams: str) -> tuple[Call]:
        return (Call(_LOCK_STREAMS, (self.database.tenant.encode(), text_array(streams))),)

    async def _now(self) -> datetime:
        if not self.database.clock.known:
            return await self.database.hear_clock()
        return self.database.clock.now()


def _known(view: AgentView, agent_id: str) -> AgentView:
    if view.agent is None:
        raise NotFound(f"there is no agent {agent_id}")
    return view
