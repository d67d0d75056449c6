"""A deliberation's two ends: it begins about what waits, and its plan is carried out.

In between it is a turn like any other, in a session of its own, without an item in focus: what
it considers goes on waiting. So a crash in the middle loses nothing and decides nothing; the plan
takes effect in the one append that ends the turn, on what waits then.
"""

from __future__ import annotations

from undivided.domain import attention, mini_triage
from undivided.domain.attention import Begin
from undivided.domain.deliberation import Applied, Triaging, abort, apply, knowing
from undivided.domain.deliberation_prompt import ITEMS_TOLD, deliberation_prompt
from undivided.domain.errors import Corrupt
from undivided.domain.events import flights as f
from undivided.domain.events import sessions as s
from undivided.domain.events.catalogue import Event
from undivided.domain.events.triage import TriageBegan
from undivided.domain.mini_triage import MINI_TRIAGE, mini_prompt
from undivided.domain.outcomes import Cancelled, Outcome
from undivided.domain.planning import Considered
from undivided.domain.plans import Plan
from undivided.domain.protection import is_begun
from undivided.domain.recorded import session_stream
from undivided.domain.scenarios import DELIBERATION
from undivided.domain.state.agent import Focused
from undivided.domain.state.item import ItemRow
from undivided.domain.stimuli import REGISTRY
from undivided.domain.triage import called_away
from undivided.domain.turn import evolve
from undivided.store.database import TENANT
from undivided.store.flights import Flight, meta_of
from undivided.store.fresh import fresh_id
from undivided.store.log import Addition, AgentTx
from undivided.store.looks import load_rows
from undivided.store.notes import memory_keys
from undivided.store.queries.knowledge import section_lengths
from undivided.store.queries.weighing import surroundings


async def begin(tx: AgentTx, head: ItemRow, acquired: f.FlightAcquired) -> Flight:
    """Start the turn in which the agent considers the best of what waits, the head first."""
    agent, epoch, turn_id = tx.agent, acquired.epoch, fresh_id("trn")
    items = await _waiting(tx, head)
    session_id = attention.deliberation_session(agent.id, turn_id)
    origin = MINI_TRIAGE if agent.policy.triage == "mini" else DELIBERATION
    began = TriageBegan(
        agent_id=agent.id, turn_id=turn_id, session_id=session_id, head=head.id,
        item_ids=tuple(item.id for item in items), epoch=epoch,
    )  # fmt: skip
    opened = s.SessionOpened(session_id=session_id, agent_id=agent.id)
    started = s.TurnStarted(
        turn_id=turn_id, session_id=session_id, agent_id=agent.id, item_ids=(),
        scenario=DELIBERATION, origin=origin, index=0, responses_before=0,
        input=await _told(tx, items, origin), epoch=epoch,
        backstop_s=agent.policy.processing_timeout_s,
    )  # fmt: skip
    appended = await tx.append(
        [
            tx.addition(acquired, began),
            Addition(session_stream(session_id), 0, (opened, started)),
        ],
        meta_of(agent, head),
    )
    state = evolve(None, started)
    if state is None:
        raise Corrupt("a started turn has no state")
    rows = appended.rows
    return Flight(
        agent=rows["agents", agent.id], epoch=epoch, items=(), considered=items,
        session=rows["sessions", session_id], turn=rows["turns", turn_id], state=state,
        version=2, edition=tx.view.edition, activity=rows["activities", turn_id],
    )  # fmt: skip


async def considered(tx: AgentTx, ids: tuple[str, ...]) -> Considered:
    """What a deliberation is about, as this transaction sees it."""
    found = await load_rows(tx.connection, TENANT, {"items": set(ids)})
    rows = {item_id: row for (_, item_id), row in found.items() if row is not None}
    return Considered(ids, rows)


async def conclude(
    tx: AgentTx, flight: Flight, outcome: Outcome, last: tuple[Event, ...]
) -> Applied:
    """What the deliberation comes to, now that it ends.

    A person who wrote meanwhile comes first, and a stop leaves the choice to order; whatever else
    ended the turn, the plan is carried out if there is one.
    """
    focus = tx.agent.attention
    if not isinstance(focus, Focused) or not focus.considered:
        raise Corrupt(f"agent {tx.agent.id} does not deliberate in turn {flight.turn.id}")
    triaging = Triaging(
        name=flight.turn.id, agent=tx.agent, turn_id=flight.turn.id, epoch=flight.epoch,
        about=await considered(tx, focus.considered), held=await memory_keys(tx),
        by="mini_triage" if flight.turn.origin == MINI_TRIAGE else "deliberation",
    )  # fmt: skip
    plan, person = _plan_of(flight, last), called_away(await _ready(tx), focus.considered)
    if person is not None:
        return abort(triaging, plan, f"a person wrote meanwhile, in {person.id}")
    applied = apply(triaging, None if isinstance(outcome, Cancelled) else plan)
    if not applied.longterm:
        return applied
    held = await section_lengths(tx.connection, tx.agent.id)
    return knowing(applied, triaging, held)


def as_planned(tx: AgentTx, applied: Applied) -> Begin | None:
    """What the agent turns to at once; None where that takes another look."""
    if applied.primary is None or tx.agent.lifecycle != "started":
        return None
    begin = Begin(
        applied.primary, (), applied.decision.rule, applied.siblings, applied.batch_context,
        applied.decision,
    )  # fmt: skip
    return None if begin.comes_back else begin


async def planned_return(tx: AgentTx, due: Begin) -> Begin | None:
    """The turn that was set aside and that the last plan chose, if it still waits to go on."""
    last = tx.agent.last_triage
    if last is None or last.aborted or last.undecided_below:
        return None
    item: ItemRow | None = await tx.row("items", last.primary)
    if item is None or not is_begun(item):
        return None
    over = tuple(one for one in (due.item, *due.over) if one.id != item.id)
    return Begin(item, over, DELIBERATION)


def _plan_of(flight: Flight, last: tuple[Event, ...]) -> Plan | None:
    """The plan that the turn has made; a mini triage makes it by what it says."""
    state = flight.state
    for answer in last:
        state = evolve(state, answer) or state
    if flight.turn.origin != MINI_TRIAGE:
        return state.plan
    return mini_triage.plan_of(state, tuple(item.id for item in flight.considered))


async def _waiting(tx: AgentTx, head: ItemRow) -> tuple[ItemRow, ...]:
    queue = await _ready(tx)
    return (head, *(item for item in queue if item.id != head.id))[:ITEMS_TOLD]


async def _ready(tx: AgentTx) -> tuple[ItemRow, ...]:
    """The best of what may be picked, as much of it as a deliberation considers.

    A deliberation begins and ends by the same look: what the next one would not consider ends
    none.
    """
    if tx.view.more:
        return await tx.waiting(list(REGISTRY), ITEMS_TOLD)
    return attention.ready(tx.view.queue, tx.view.now)


async def _told(tx: AgentTx, items: tuple[ItemRow, ...], origin: str) -> str:
    if origin == MINI_TRIAGE:
        return mini_prompt(tx.view, items, await surroundings(tx.connection, TENANT, tx.agent.id))
    joined = {item.id: await tx.joined(item) for item in items}
    return deliberation_prompt(items, joined, tx.view.now)
