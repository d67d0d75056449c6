"""Callbacks that come: wakeups whose time has come, processes that are over, cancelled ones.

Each is decided under the lock of its agent, on its row as it is then, in the append that also
puts what it brings into the mailbox. So of two workers that see the same moment, the second
finds the callback resolved, or armed for a later one, and does nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from msgspec import Struct

from undivided.domain import callbacks
from undivided.domain.agents import AGENT_DELETED
from undivided.domain.callbacks import ALL_AT_MOST, PENDING_AT_MOST, Ended
from undivided.domain.errors import Full, NotFound
from undivided.domain.events.catalogue import Event
from undivided.domain.mailbox import Accept, accept
from undivided.domain.recorded import Meta
from undivided.domain.state.callback import CallbackRow
from undivided.store.codec import row_decoder
from undivided.store.commands.outlet import Outlet
from undivided.store.database import TENANT
from undivided.store.fresh import fresh_id
from undivided.store.log import AgentTx, Log

AT_ONCE = 50
Decide = Callable[[CallbackRow, AgentTx], tuple[tuple[Accept, ...], Event] | None]
_callback_of = row_decoder(CallbackRow)

_DUE = """
SELECT to_jsonb(c)::text FROM callbacks c
  JOIN agents a ON a.tenant = c.tenant AND a.id = c.agent_id AND a.lifecycle <> 'deleted'
 WHERE c.tenant = %s AND c.status = 'pending' AND c.wake_at <= clock_timestamp()
   AND c.agent_id <> ALL(%s)
 ORDER BY c.wake_at LIMIT %s"""
_RUNNING = """
SELECT to_jsonb(c)::text, clock_timestamp(), a.lifecycle = 'deleted' FROM callbacks c
  JOIN agents a ON a.tenant = c.tenant AND a.id = c.agent_id
 WHERE c.tenant = %s AND c.host = %s AND c.type = 'background_exec'
   AND c.status IN ('pending', 'timed_out')
 ORDER BY c.registered_at"""
_OF_AGENT = """
SELECT to_jsonb(c)::text FROM callbacks c
 WHERE c.tenant = %s AND c.agent_id = %s AND c.type <> 'background_exec'
   AND c.status IN ('pending', 'timed_out')
 ORDER BY c.registered_at, c.id"""
_CLOSED = """
SELECT to_jsonb(c)::text, clock_timestamp() FROM callbacks c
 WHERE c.tenant = %s AND c.id = ANY(%s) AND c.status NOT IN ('pending', 'timed_out')"""
_PENDING = """
SELECT count(*) FROM callbacks c
 WHERE c.tenant = %s AND c.agent_id = %s AND c.status = 'pending'"""


class Kept(Struct, frozen=True):
    """A process that a host looks after; nobody would hear of an `abandoned` one."""

    row: CallbackRow
    abandoned: bool


async def due_wakeups(log: Log, but: Collection[str] = ()) -> tuple[CallbackRow, ...]:
    """The wakeups whose time has come by the database's clock, the longest due first.

    `but`: agents that can take nothing now. Without them a full mailbox with many due wakeups
    would keep everybody else's out of sight.
    """
    async with log.database.connection() as connection:
        cursor = await connection.execute(_DUE, (log.database.tenant, list(but), AT_ONCE))
        return tuple(_callback_of(text) for (text,) in await cursor.fetchall())


async def running_on(log: Log, host: str) -> tuple[Kept, ...]:
    """The processes that were registered for a host and whose end nobody has told yet."""
    async with log.database.connection() as connection:
        cursor = await connection.execute(_RUNNING, (log.database.tenant, host))
        found = await cursor.fetchall()
    for _, now, _ in found[:1]:
        log.database.clock.heard(now)
    return tuple(Kept(_callback_of(text), abandoned) for text, _, abandoned in found)


async def closed(log: Log, callback_ids: Collection[str]) -> tuple[CallbackRow, ...]:
    """Those of some callbacks of which nothing is still to come."""
    if not callback_ids:
        return ()
    async with log.database.connection() as connection:
        parameters = log.database.tenant, list(callback_ids)
        cursor = await connection.execute(_CLOSED, parameters)
        found = await cursor.fetchall()
    for _, now in found[:1]:
        log.database.clock.heard(now)
    return tuple(_callback_of(text) for text, _ in found)


async def fire(outlet: Outlet, seen: CallbackRow) -> bool:
    """Deliver a wakeup whose time has come; false if that is done or has to wait."""
    most = ALL_AT_MOST if seen.misfire == "all" else 1
    item_ids = tuple(fresh_id("mbx") for _ in range(most))

    def decide(row: CallbackRow, tx: AgentTx) -> tuple[tuple[Accept, ...], Event] | None:
        if not callbacks.is_due(row, tx.view.now):
            return None
        # More than there is room for would be put off, and by then more slots are missed.
        room = tx.agent.policy.mailbox_capacity - tx.agent.waiting
        return callbacks.fired(row, item_ids[: max(1, room)], tx.view.now)

    return await _deliver(outlet, seen, decide)


async def complete(outlet: Outlet, seen: CallbackRow, ended: Ended) -> bool:
    """Deliver how a process ended; false if that is done or has to wait."""
    item_id = fresh_id("mbx")

    def decide(row: CallbackRow, _tx: AgentTx) -> tuple[tuple[Accept, ...], Event] | None:
        if not callbacks.is_open(row):
            return None
        brought, done = callbacks.completed(row, item_id, ended)
        return (brought,), done

    return await _deliver(outlet, seen, decide)


async def abandon(outlet: Outlet, seen: CallbackRow) -> bool:
    """Close the callback of a process whose agent was deleted; false if that is done."""
    async with outlet.log.locked(seen.agent_id) as tx:
        row: CallbackRow | None = await tx.row("callbacks", seen.id)
        event = None if row is None else callbacks.cancelled(row, AGENT_DELETED)
        if event is None or tx.agent.lifecycle != "deleted":
            return False
        await tx.append([tx.addition(event)], _caused_by(seen))
    return True


async def refuse_more(tx: AgentTx) -> None:
    """Refuse another callback of an agent that has too many pending.

    Raises:
        Full: it has.
    """
    cursor = await tx.connection.execute(_PENDING, (TENANT, tx.agent.id))
    row = await cursor.fetchone()
    if row is not None and row[0] >= PENDING_AT_MOST:
        raise Full(f"{PENDING_AT_MOST} callbacks are pending already; let some come first")


async def given_up(tx: AgentTx) -> tuple[Event, ...]:
    """What ends with its agent, but for processes: their host ends those, and says so then."""
    cursor = await tx.connection.execute(_OF_AGENT, (TENANT, tx.agent.id))
    rows = [_callback_of(text) for (text,) in await cursor.fetchall()]
    events = (callbacks.cancelled(row, AGENT_DELETED) for row in rows)
    return tuple(event for event in events if event is not None)


async def cancel_wakeup(outlet: Outlet, agent_id: str, wakeup_id: str, meta: Meta) -> None:
    """Take a wakeup back.

    Raises:
        NotFound: the agent has no such wakeup to come.
    """
    async with outlet.log.locked(agent_id) as tx:
        row: CallbackRow | None = await tx.row("callbacks", wakeup_id)
        own = row is not None and row.agent_id == agent_id and row.type == "wakeup"
        event = callbacks.cancelled(row, meta.actor or "user") if row is not None and own else None
        if event is None:
            raise NotFound(f"agent {agent_id} has no wakeup {wakeup_id[:128]!r} to come")
        await tx.append([tx.addition(event)], meta)
    outlet.announce(agent_id)


async def _deliver(outlet: Outlet, seen: CallbackRow, decide: Decide) -> bool:
    try:
        async with outlet.log.locked(seen.agent_id) as tx:
            row: CallbackRow | None = await tx.row("callbacks", seen.id)
            if row is None or tx.agent.lifecycle == "deleted":
                return False
            decided = decide(row, tx)
            if decided is None:
                return False
            commands, event = decided
            await tx.append([tx.addition(*accept(tx.agent, commands), event)], _caused_by(seen))
            before = tx.agent
    except (Full, NotFound):  # it stays as it is, and is tried again
        return False
    outlet.wake(before)
    return True


def _caused_by(row: CallbackRow) -> Meta:
    return Meta(actor="system", causation=row.registered_by, correlation=row.correlation)
