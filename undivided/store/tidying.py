"""Putting a mailbox in order before something is picked from it.

Each round is an append of its own, after which the agent is looked at afresh, until nothing is
left to do: what has come back, what is about the same, what has lost its point or its time.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal

from undivided.domain import attention, consolidation, triage
from undivided.domain.attention import Begin
from undivided.domain.deliberation_prompt import ITEMS_TOLD
from undivided.domain.endings import OWNER
from undivided.domain.events.catalogue import Event
from undivided.domain.recorded import Meta, user_stream
from undivided.domain.state.agent import AgentRow
from undivided.domain.state.item import ItemRow
from undivided.domain.state.view import AgentView
from undivided.domain.stimuli import REGISTRY
from undivided.domain.triage import Deliberate
from undivided.store.flights import QUEUE_SEEN
from undivided.store.fresh import fresh_id
from undivided.store.log import Addition, AgentTx, Log

Tidied = Literal["tidied", "overdue"]
"""Something was put in order; or something is to be given up, which people are told of."""


async def tidy(tx: AgentTx, view: AgentView) -> Tidied | None:
    """Put what waits in order for an idle agent; None if nothing is to be done."""
    agent = tx.agent
    if agent.lifecycle != "started":
        return None
    mine: tuple[Event, ...] = attention.resurfacing(tx.view, agent)
    if not mine:
        queue = await _seen(tx, view)
        if any(consolidation.is_expired(agent, item, view.now) for item in queue):
            return "overdue"
        mine = consolidation.purge(agent, queue, view.now)
        mine = mine or consolidation.consolidate(agent, queue, view.now)
    if not mine:
        return None
    await tx.append([tx.addition(*mine)], _meta(agent))
    return "tidied"


async def give_up(log: Log, agent_id: str) -> None:
    """Give up what has waited beyond any use, and tell people so in the same append."""
    stream = user_stream(OWNER)
    async with log.locked(agent_id, QUEUE_SEEN, (stream,)) as tx:
        queue = await _seen(tx, tx.view)
        found = tuple(
            consolidation.expired(tx.agent, item, tx.view.now, (fresh_id("dec"), fresh_id("ntf")))
            for item in queue
        )
        given_up = tuple(one for one in found if one is not None)
        if given_up and tx.agent.lifecycle == "started":
            notices = tuple(one.notice for one in given_up)
            told = Addition(stream, await tx.locked_version(stream), notices)
            mine = (one.expired for one in given_up)
            await tx.append([tx.addition(*mine), told], _meta(tx.agent))


def considers(agent: AgentRow, begin: Begin) -> bool:
    """Whether the agent considers all that waits before it turns to the best of it."""
    if triage.in_vain(agent, (begin.item, *begin.over)):
        return False
    chosen = triage.tier(begin.item, begin.over, agent.policy, agent.policy.triage != "off")
    return isinstance(chosen, Deliberate)


def takes_thought(agent: AgentRow, begin: Begin, now: datetime) -> bool:
    """Whether something is to be done before `begin`, as far as what is seen of the queue shows."""
    queue = (begin.item, *begin.over)
    return (
        considers(agent, begin)
        or (bool(begin.over) and bool(consolidation.consolidate(agent, queue, now)))
        or bool(consolidation.purge(agent, queue, now))
        or any(consolidation.is_expired(agent, item, now) for item in queue)
    )


async def _seen(tx: AgentTx, view: AgentView) -> tuple[ItemRow, ...]:
    """What waits; of a long queue the best of it, and what has waited too long."""
    queue = attention.ready(view.queue, view.now)
    if not view.more:
        return queue
    best = await tx.waiting(list(REGISTRY), ITEMS_TOLD)
    patience_s = min(tx.agent.policy.stale_after_s, tx.agent.policy.queued_ttl_s)
    before = view.now - timedelta(seconds=patience_s)
    late = await tx.queued_before(before, ITEMS_TOLD)
    rows = {item.id: item for item in (*best, *attention.known_only(late))}
    return tuple(rows.values())


def _meta(agent: AgentRow) -> Meta:
    return Meta(actor=f"agent:{agent.id}")
