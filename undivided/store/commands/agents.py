"""An agent's life, commanded from outside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from undivided.domain import agents
from undivided.domain.agents import ConfigureAgent, CreateAgent
from undivided.domain.coordinates import Coordinate
from undivided.domain.errors import Conflict, Corrupt, Rejected
from undivided.domain.events.catalogue import Event
from undivided.domain.events.flights import FlightAcquired, FlightReleased, StopRequested
from undivided.domain.events.sessions import TurnEnded
from undivided.domain.outcomes import Cancelled
from undivided.domain.policy import Policy
from undivided.domain.recorded import Meta, agent_stream, session_stream
from undivided.domain.state.agent import AgentRow
from undivided.domain.state.item import ItemRow
from undivided.domain.state.session import TurnRow
from undivided.domain.turn import left_open
from undivided.store.codec import row_decoder
from undivided.store.commands.callbacks import given_up
from undivided.store.commands.outlet import Outlet
from undivided.store.database import TENANT
from undivided.store.flights import QUEUE_SEEN
from undivided.store.fresh import fresh_id
from undivided.store.log import Addition, AgentTx
from undivided.store.steps import turn_state

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


async def cancel_processing(outlet: Outlet, agent_id: str, meta: Meta) -> Commanded:
    """Ask the turn in focus to end for good at its next safe point; without one nothing happens.

    The agent stays started: it goes on with whatever waits behind the turn.
    """
    return await _change(
        outlet, agent_id, lambda agent: agents.request_stop(agent, meta.actor), meta
    )


async def delete(outlet: Outlet, agent_id: str, meta: Meta) -> Commanded:
    """End an agent for good; what waits in its mailbox and what it would hear of is cancelled.

    Raises:
        Rejected: a turn is at work.
    """
    async with outlet.log.locked(agent_id, QUEUE_SEEN) as tx:
        waiting = await _waiting(tx) if tx.agent.lifecycle != "deleted" else ()
        decision_ids = tuple(fresh_id("dec") for _ in waiting)
        events = agents.delete(tx.agent, waiting, decision_ids)
        if not events:
            return Commanded(tx.agent, None)
        turns = dict.fromkeys(turn for item in waiting if (turn := agents.turn_set_aside(item)))
        ended = [await _ended(tx, turn_id) for turn_id in turns]
        held = _held_for(tx, ended)
        known = {("items", item.id): item for item in waiting}
        mine = tx.addition(*held, *await given_up(tx), *events)
        appended = await tx.append([mine, *ended], meta, known=known)
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


def _held_for(tx: AgentTx, ended: list[Addition]) -> tuple[Event, ...]:
    """A flight of a moment, for only a flight ends turns; nobody else holds an idle agent."""
    if not ended:
        return ()
    epoch = _next_epoch(tx)
    return (
        FlightAcquired(agent_id=tx.agent.id, epoch=epoch, worker=agents.AGENT_DELETED),
        FlightReleased(agent_id=tx.agent.id, epoch=epoch, reason="done"),
    )


def _next_epoch(tx: AgentTx) -> int:
    return tx.view.flight.epoch + 1 if tx.view.flight else 1


async def _ended(tx: AgentTx, turn_id: str) -> Addition:
    """The end of a turn that was set aside, with a result for each of its open calls."""
    turn: TurnRow | None = await tx.row("turns", turn_id)
    if turn is None:
        raise Corrupt(f"turn {turn_id} was set aside and has no row")
    state, version = await turn_state(tx.connection, turn)
    epoch = _next_epoch(tx)
    end = TurnEnded(
        turn_id=turn_id, session_id=turn.session_id, agent_id=turn.agent_id,
        item_ids=turn.item_ids, outcome=Cancelled(agents.AGENT_DELETED), usage=state.usage,
        responses=state.responses, tool_calls=state.tool_calls, epoch=epoch,
    )  # fmt: skip
    steps: tuple[Event, ...] = (*left_open(state, epoch), end)
    return Addition(session_stream(turn.session_id), version, steps)


async def _waiting(tx: AgentTx) -> tuple[ItemRow, ...]:
    """Every item that waits or is put off; stable, for the agent's lock is held."""
    cursor = await tx.connection.execute(
        "SELECT to_jsonb(i)::text FROM items i WHERE i.tenant = %s AND i.agent_id = %s"
        " AND i.status IN ('queued', 'deferred') ORDER BY i.priority, i.seq",
        (TENANT, tx.agent.id),
    )
    return tuple(_item_of(row[0]) for row in await cursor.fetchall())
