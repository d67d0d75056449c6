"""Acts on the agent's own mailbox, decided on the item as it is under the agent's lock."""

from __future__ import annotations

from undivided.domain import mailbox_tools as tools
from undivided.domain.mailbox_tools import CheckMailbox, DeferItem, DropItem, Owned, PrioritizeItem
from undivided.domain.state.item import ItemRow
from undivided.store.acts.doing import Doing, Done
from undivided.store.database import TENANT
from undivided.store.flights import Flight
from undivided.store.fresh import fresh_id
from undivided.store.log import AgentTx
from undivided.store.queries.weighing import around_in


async def _check(tx: AgentTx, _flight: Flight, _act: CheckMailbox) -> Done:
    queue, decisions = await around_in(tx.connection, TENANT, tx.agent.id)
    return Done(content=tools.checked(tx.view, queue, decisions))


async def _defer(tx: AgentTx, flight: Flight, act: DeferItem) -> Done:
    return _done(tools.deferred(_owned(tx, flight), await _item(tx, act.item_id), act))


async def _drop(tx: AgentTx, flight: Flight, act: DropItem) -> Done:
    return _done(tools.dropped(_owned(tx, flight), await _item(tx, act.item_id), act))


async def _prioritize(tx: AgentTx, flight: Flight, act: PrioritizeItem) -> Done:
    return _done(tools.prioritized(_owned(tx, flight), await _item(tx, act.item_id), act))


async def _item(tx: AgentTx, item_id: str) -> ItemRow | None:
    row: ItemRow | None = await tx.row("items", item_id)
    return row


def _owned(tx: AgentTx, flight: Flight) -> Owned:
    return Owned(tx.agent, flight.epoch, fresh_id("dec"))


def _done(told: tools.Told) -> Done:
    return Done(content=told.content, events=told.events, failed=told.failed)


CHECKING = Doing(_check)
DEFERRING = Doing(_defer)
DROPPING = Doing(_drop)
PRIORITIZING = Doing(_prioritize)
