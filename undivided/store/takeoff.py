"""Taking off: the transaction in which a worker that holds an agent begins what is due.

Before anything is picked, what waits is put in order: deferred items whose time has come wait
again. That is an append of its own, after which the agent is looked at afresh: each append
decides on rows as they stand, never on rows as they would be.
"""

from __future__ import annotations

from typing import Literal

from undivided.domain import attention
from undivided.domain.attention import Begin, Carry, Rest, Taken, Wake
from undivided.domain.errors import Conflict, Corrupt
from undivided.domain.events import flights as f
from undivided.domain.events import sessions as s
from undivided.domain.events.catalogue import Event
from undivided.domain.interruptions import At, set_aside, weighed
from undivided.domain.interrupts import OTHERWISE, Pair, Weighing, while_waiting
from undivided.domain.recorded import session_stream
from undivided.domain.state.agent import Focused, Idle, Suspended
from undivided.domain.state.item import ItemRow, Queued
from undivided.domain.state.session import SessionRow, TurnRow
from undivided.domain.turn import TurnState, waited_for
from undivided.domain.waits import Approval
from undivided.store import deliberating
from undivided.store.flights import QUEUE_SEEN, Flight, meta_of, with_known_types
from undivided.store.fresh import fresh_id
from undivided.store.log import Addition, AgentTx, Log
from undivided.store.openings import Opening
from undivided.store.steps import turn_state
from undivided.store.tidying import Tidied, considers, give_up, tidy


async def take_off(log: Log, agent_id: str, worker: str) -> Flight | None:
    """Begin what is due for an agent whose lock this worker holds; None if nothing is.

    Raises:
        NotFound, Unavailable: nothing was begun.
    """
    while True:
        taken = await _once(log, agent_id, worker)
        if taken == "overdue":
            await give_up(log, agent_id)
        elif taken != "tidied":
            return taken


async def _once(log: Log, agent_id: str, worker: str) -> Flight | Tidied | None:
    try:
        async with log.unlocked(agent_id, QUEUE_SEEN, attention.chat_session(agent_id)) as tx:
            return await _take_off(tx, worker)
    except Conflict:  # the agent moved on in this very moment: now in line with the others
        async with log.locked(agent_id, QUEUE_SEEN) as tx:
            return await _take_off(tx, worker)


async def _take_off(tx: AgentTx, worker: str) -> Flight | Tidied | None:
    view = await with_known_types(tx)
    if isinstance(tx.agent.attention, Idle) and (tidied := await tidy(tx, view)):
        return tidied
    due = attention.what_is_due(view, tx.agent)
    acquired = _acquired(tx, worker)
    match due:
        case Rest():
            return "tidied" if await _give_way(tx, acquired) else None
        case Begin() if due.comes_back:
            return await _come_back(tx, due, acquired)
        case Begin() if considers(tx.agent, due):
            planned = await deliberating.planned_return(tx, due)
            if planned is not None:
                return await _come_back(tx, planned, acquired)
            return await deliberating.begin(tx, due.item, acquired)
        case Begin():
            opening = await Opening.of(tx, due, acquired.epoch)
            appended = await tx.append(
                [tx.addition(acquired, *opening.picked), opening.session_addition()],
                opening.meta,
                known=opening.known,
            )
            return opening.flight(tx, appended)
        case Carry() | Wake():
            return await _resume(tx, due, acquired)


def _acquired(tx: AgentTx, worker: str) -> f.FlightAcquired:
    epoch = tx.view.flight.epoch + 1 if tx.view.flight else 1
    held = tx.view.flight is not None and tx.view.flight.held
    return f.FlightAcquired(
        agent_id=tx.agent.id, epoch=epoch, worker=worker, taken_from=epoch - 1 if held else None
    )


async def _give_way(tx: AgentTx, acquired: f.FlightAcquired) -> bool:
    """Weigh what has come while a turn waits for a person, and set the turn aside for it.

    What it does not give way to is weighed once, so that no sweep looks at it again.
    """
    focus, agent = tx.agent.attention, tx.agent
    if not isinstance(focus, Suspended) or not isinstance(focus.wait, Approval):
        return False
    if agent.lifecycle != "started" or not tx.view.focus:
        return False
    pairs = tuple(
        Pair.of(
            (tx.view.focus[0], focus.session_id),
            (item, attention.session_for(agent, item)),
            agent.policy,
        )
        for item in attention.unweighed(tx.view, focus.turn_id)
    )
    if not pairs:
        return False
    at = At(focus.turn_id, focus.session_id, acquired.epoch)
    weighing = while_waiting(pairs)
    if weighing is None:
        await _pass_over(tx, acquired, at, pairs)
        return True
    wait_s = max(0.0, (focus.until - tx.view.now).total_seconds())
    names = tuple(fresh_id("dec") for _ in tx.view.focus)
    mine: tuple[Event, ...] = (
        acquired,
        weighed(agent, at, weighing.candidate, weighing, fresh_id("dec")),
        *set_aside(agent, at, (tx.view.focus, names), weighing, wait_s),
        _let_go(acquired),
    )
    preempted = s.TurnPreempted(turn_id=at.turn_id, by=weighing.candidate.id, epoch=acquired.epoch)
    turn, _ = await _turn(tx, at.turn_id, at.session_id)
    _, version = await turn_state(tx.connection, turn)
    await tx.append(
        [tx.addition(*mine), Addition(session_stream(at.session_id), version, (preempted,))],
        meta_of(agent, weighing.candidate),
    )
    return True


async def _pass_over(
    tx: AgentTx, acquired: f.FlightAcquired, at: At, pairs: tuple[Pair, ...]
) -> None:
    """The turn goes on waiting: nothing of all that is for it to give way to."""
    decided = (
        weighed(tx.agent, at, pair.new, Weighing(pair.new, OTHERWISE, ()), fresh_id("dec"))
        for pair in pairs
    )
    await tx.append(
        [tx.addition(acquired, *decided, _let_go(acquired))], meta_of(tx.agent, pairs[0].new)
    )


def _let_go(acquired: f.FlightAcquired) -> f.FlightReleased:
    return f.FlightReleased(agent_id=acquired.agent_id, epoch=acquired.epoch, reason="suspended")


async def _resume(tx: AgentTx, due: Carry | Wake, acquired: f.FlightAcquired) -> Flight:
    """Go on with the turn in focus."""
    turn, session = await _turn(tx, due.turn_id, due.session_id)
    focus = tx.agent.attention
    considered = focus.considered if isinstance(focus, Focused) else ()
    if not tx.view.focus and not considered:
        raise Corrupt(f"agent {tx.agent.id} is focused on turn {due.turn_id} without an item")
    items = tuple(sorted(tx.view.focus, key=lambda item: turn.item_ids.index(item.id)))
    state, version = await turn_state(tx.connection, turn)
    regained = f.FocusRegained(
        agent_id=tx.agent.id, turn_id=turn.id, epoch=acquired.epoch, cause=due.cause
    )
    left_s = None
    if isinstance(due, Wake) and attention.patience_over(due, waited_for(turn)):
        left_s = 0.0
    resumed = s.TurnResumed(turn_id=turn.id, cause=due.cause, epoch=acquired.epoch, left_s=left_s)
    ended = _end_of_wait(due, turn, state, acquired.epoch) if isinstance(due, Wake) else ()
    flight = Flight(
        agent=tx.agent, epoch=acquired.epoch, items=items, session=session, turn=turn,
        state=state, version=version, edition=tx.view.edition,
        activity=await tx.row("activities", turn.id),
        considered=await _considered(tx, considered),
    )  # fmt: skip
    return await _regained(tx, flight, (acquired, regained), (*ended, resumed))


async def _come_back(tx: AgentTx, begin: Begin, acquired: f.FlightAcquired) -> Flight:
    """Go on with a turn that was set aside, where it stopped."""
    phase = begin.item.phase
    if not isinstance(phase, Queued) or phase.turn_id is None or phase.session_id is None:
        raise Corrupt(f"item {begin.item.id} comes back without its turn")
    turn, session = await _turn(tx, phase.turn_id, phase.session_id)
    items = [await _sibling(tx, item_id) for item_id in turn.item_ids]
    back = attention.with_siblings(tx.agent, tuple(items))
    begin = Begin(items[0], begin.over, begin.rule, tuple(items[1:]))
    names = tuple(fresh_id("dec") for _ in items)
    picks = attention.resumed(tx.agent, begin, session.id, Taken(turn.id, names, acquired.epoch))
    state, version = await turn_state(tx.connection, turn)
    flight = Flight(
        agent=tx.agent, epoch=acquired.epoch, items=tuple(items), session=session, turn=turn,
        state=state, version=version, edition=tx.view.edition,
        activity=await tx.row("activities", turn.id),
    )  # fmt: skip
    wake = Wake(turn.id, session.id, _ended_by(phase), answer=phase.answer or "")
    ended = _end_of_wait(wake, turn, state, acquired.epoch)
    left_s = 0.0 if attention.patience_over(wake, waited_for(turn)) else None
    resumed = s.TurnResumed(turn_id=turn.id, cause="preempted", epoch=acquired.epoch, left_s=left_s)
    stop = attention.asked_to_stop(tx.agent, turn.id, tuple(items))
    mine: tuple[Event, ...] = (*back, acquired, *picks, *stop)
    return await _regained(tx, flight, mine, (*ended, resumed))


def _ended_by(phase: Queued) -> Literal["answered", "stopped", "waited"]:
    """How the wait ended of a turn that was set aside with the item."""
    if phase.answer is not None:
        return "answered"
    return "waited" if phase.stop_by is None else "stopped"


async def _regained(
    tx: AgentTx, flight: Flight, mine: tuple[Event, ...], steps: tuple[Event, ...]
) -> Flight:
    appended = await tx.append(
        [tx.addition(*mine), flight.session_events(*steps)],
        meta_of(tx.agent, flight.item),
        known=flight.known(tx.view.edition),
    )
    flight.agent = appended.rows["agents", tx.agent.id]
    flight.items = tuple(appended.rows.get(("items", i.id), i) for i in flight.items)
    flight.advance(appended)
    return flight


async def _turn(tx: AgentTx, turn_id: str, session_id: str) -> tuple[TurnRow, SessionRow]:
    turn: TurnRow | None = await tx.row("turns", turn_id)
    session: SessionRow | None = await tx.row("sessions", session_id)
    if turn is None or session is None:
        raise Corrupt(f"agent {tx.agent.id} is at turn {turn_id}, which has no rows")
    return turn, session


async def _considered(tx: AgentTx, ids: tuple[str, ...]) -> tuple[ItemRow, ...]:
    """What a deliberation is about, as it is now."""
    if not ids:
        return ()
    about = await deliberating.considered(tx, ids)
    return tuple(about.rows[one] for one in ids)


async def _sibling(tx: AgentTx, item_id: str) -> ItemRow:
    item: ItemRow | None = await tx.row("items", item_id)
    if item is None:
        raise Corrupt(f"item {item_id} has no row")
    return item


def _end_of_wait(wake: Wake, turn: TurnRow, state: TurnState, epoch: int) -> tuple[Event, ...]:
    """The result of the call that waited, if it still does."""
    return tuple(
        s.ToolCallFinished(
            turn_id=wake.turn_id,
            call_id=waiting.call.id,
            tool=waiting.call.tool,
            resolution=attention.resolution_of(wake),
            content=attention.told_after_wait(wake, waited_for(turn)),
            epoch=epoch,
        )
        for waiting in state.open
        if waiting.waiting
    )
