"""An agent's life, commanded from outside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from undivided.domain import agents
from undivided.domain.agents import ConfigureAgent, CreateAgent
from undivided.domain.coordinates import Coordinate
from undivided.domain.errors import Conflict, Rejected
from undivided.domain.events.catalogue import Event
from undivided.domain.events.flights import StopRequested
from undivided.domain.policy import Policy
from undivided.domain.recorded import Meta, agent_stream
from undivided.domain.state.agent import AgentRow
from undivided.domain.state.item import ItemRow
from undivided.store.codec import row_decoder
from undivided.store.commands.outlet import Outlet
from undivided.store.database import TENANT
from undivided.store.fresh import fresh_id
from undivided.store.log import Addition, AgentTx

_item_of = row_decoder(ItemRow)


class Commanded(Struct, frozen=True):
    """The agent after a command, and where the log stood; None if nothing had to change."""

    agent: AgentRow
    coordinate: Coordinate | None


async def create(outlet: Outlet, base: Policy, command: CreateAgent, meta: Meta) -> Commanded:
    """Bring an agent into being.

    Raises:
        Invalid: a name, instructions or policy that cannot be.
        Rejected: there is an agent of this id.
    """
    addition = Addition(agent_stream(command.agent_id), 0, agents.create(base, command))
    try:
        appended = await outlet.log.append([addition], meta)
    except Conflict as error:
        raise Rejected(
            "agent_exists", f"there is an agent {command.agent_id} already; choose another id"
        ) from error
    outlet.announce(command.agent_id)
    return Commanded(appended.rows[("agents", command.agent_id)], appended.coordinate)


async def configure(
    outlet: Outlet, agent_id: str, command: ConfigureAgent, meta: Meta
) -> Commanded:
    """Change what the command sets."""
    return await _change(outlet, agent_id, lambda agent: agents.configure(agent, command), meta)


async def start(outlet: Outlet, agent_id: str, meta: Meta) -> Commanded:
    """Let a stopped or paused agent pick up work again."""
    return await _change(outlet, agent_id, agents.start, meta)


async def pause(outlet: Outlet, agent_id: str, meta: Meta) -> Commanded:
    """Let the turn at work finish, and pick nothing after it."""
    return await _change(outlet, agent_id, agents.pause, meta)


async def stop(outlet: Outlet, agent_id: str, meta: Meta) -> Commanded:
    """Interrupt the turn at work and pick nothing more."""
    return await _change(outlet, agent_id, agents.stop, meta)


async def delete(outlet: Outlet, agent_id: str, meta: Meta) -> Commanded:
    """End an agent for good; everything that waits in its mailbox is cancelled.

    Raises:
        Rejected: a turn is at work.
    """
    async with outlet.log.locked(agent_id) as tx:
        waiting = await _waiting(tx) if tx.agent.lifecycle != "deleted" else ()
        decision_ids = tuple(fresh_id("dec") for _ in waiting)
        events = agents.delete(tx.agent, waiting, decision_ids)
        if not events:
            return Commanded(tx.agent, None)
        known = {("items", item.id): item for item in waiting}
        appended = await tx.append([tx.addition(*events)], meta, known=known)
    outlet.announce(agent_id)
    return Commanded(appended.rows[("agents", agent_id)], appended.coordinate)


async def _change(
    outlet: Outlet,
    agent_id: str,
    decide: Callable[[AgentRow], tuple[Event, ...]],
    meta: Meta,
) -> Commanded:
    async with outlet.log.locked(agent_id) as tx:
        events = decide(tx.agent)
        if not events:
            return Commanded(tx.agent, None)
        appended = await tx.append([tx.addition(*events)], meta)
        before = tx.agent
    if any(isinstance(event, StopRequested) for event in events):
        outlet.interrupt(before)
    outlet.wake(before)
    after: Any = appended.rows[("agents", agent_id)]
    return Commanded(after, appended.coordinate)


async def _waiting(tx: AgentTx) -> tuple[ItemRow, ...]:
    """Every queued item, deferred ones too; stable, for the agent's lock is held."""
    cursor = await tx.connection.execute(
        "SELECT to_jsonb(i)::text FROM items i WHERE i.tenant = %s AND i.agent_id = %s"
        " AND i.status = 'queued' ORDER BY i.priority, i.seq",
        (TENANT, tx.agent.id),
    )
    return tuple(_item_of(row[0]) for row in await cursor.fetchall())
