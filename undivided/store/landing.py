"""The other transactions of a flight: step, note, suspend, yield, end, and being fenced.

*Ending* and *nothing eligible waits* are one check, about one version of the agent's stream,
which accepting a stimulus raises: a stimulus is either seen here and picked at once, or its
acceptance sees the agent idle and rings the doorbell. A turn that ends soon after its agent was
looked at goes by that look, and is refused if anything was accepted since. It does so only if
nothing else waits, or the look shows what comes next; any other takes the agent's row lock and
looks again.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime

from msgspec import Struct

from undivided.domain import attention
from undivided.domain.attention import Begin, Rest
from undivided.domain.endings import OWNER, Ending, Fate, fates_of, stopped_outcome
from undivided.domain.errors import Conflict, StaleFlight
from undivided.domain.events import flights as f
from undivided.domain.events import sessions as s
from undivided.domain.events.catalogue import Event
from undivided.domain.events.items import ItemResurfaced
from undivided.domain.outcomes import (
    Cancelled,
    Completed,
    Failed,
    Incomplete,
    Interrupted,
    Outcome,
    TimedOut,
)
from undivided.domain.recorded import Meta, agent_stream, session_stream, user_stream
from undivided.domain.state.agent import AgentRow, Idle
from undivided.domain.state.item import ItemRow
from undivided.domain.state.view import AgentView
from undivided.domain.turn import left_open
from undivided.domain.waits import Wait
from undivided.store import deliberating
from undivided.store.activity_lines import lines_for_chat
from undivided.store.flights import QUEUE_SEEN, Flight, with_known_types
from undivided.store.fresh import fresh_id
from undivided.store.log import Addition, AgentTx, Log
from undivided.store.looks import SessionLook
from undivided.store.memory import FRESH_S
from undivided.store.openings import Opening
from undivided.store.tidying import takes_thought


async def record(log: Log, flight: Flight, *steps: Event) -> None:
    """Record steps in one round trip.

    Raises:
        StaleFlight, Conflict: the flight is lost; nothing was written.
    """
    flight.advance(await log.append([flight.session_events(*steps)], flight.meta, flight.fence))


async def suspend(log: Log, flight: Flight, call_id: str, wait: Wait) -> None:
    """Let the turn wait inside `call_id` and let go of the agent."""
    wait_s = max(0.0, wait.seconds)
    turn_id, epoch = flight.turn.id, flight.epoch
    async with log.locked(flight.agent.id, QUEUE_SEEN) as tx:
        suspended = f.FocusSuspended(
            agent_id=tx.agent.id, turn_id=turn_id, epoch=epoch, wait=wait, wait_s=wait_s
        )
        waits = s.TurnSuspended(
            turn_id=turn_id, call_id=call_id, wait=wait, wait_s=wait_s, epoch=epoch
        )
        await tx.append(
            [tx.addition(suspended, released(flight, "suspended")), flight.session_events(waits)],
            flight.meta,
            flight.fence,
            flight.known(tx.view.edition),
        )


async def yield_to_others(log: Log, flight: Flight) -> None:
    """Let go of the agent between two steps; its turn stays at work for the next worker."""
    async with log.locked(flight.agent.id, QUEUE_SEEN) as tx:
        yielded = s.TurnYielded(turn_id=flight.turn.id, epoch=flight.epoch)
        await tx.append(
            [tx.addition(released(flight, "yielded")), flight.session_events(yielded)],
            flight.meta,
            flight.fence,
            flight.known(tx.view.edition),
        )


class Rested(Struct, frozen=True):
    """The agent is let go; `more` says that something else is due, which takes another look."""

    more: bool


async def end(
    log: Log, flight: Flight, outcome: Outcome, last: tuple[Event, ...], leaving: bool
) -> Flight | Rested:
    """End the turn and, unless the worker is leaving, begin the next one in the same append.

    `last` are steps that belong to the end, such as the final response. Answers the flight
    with its next turn, or that the agent is let go.

    Raises:
        StaleFlight, Conflict: the flight is lost; nothing was written.
    """
    told, view = _told_of(outcome), flight.remembered
    if not told and view is not None and _is_fresh(view, log.database.clock.now()):
        with suppress(Conflict):  # the agent has moved on: the decision is made again
            async with log.recalled(view, QUEUE_SEEN) as tx:
                return await _end(tx, flight, outcome, last, leaving)
    try:
        async with log.locked(flight.agent.id, QUEUE_SEEN, told) as tx:
            return await _end(tx, flight, outcome, last, leaving)
    except Conflict as conflict:
        if leaving or conflict.stream in (session_stream(flight.session.id), _agent(flight)):
            raise
        # Another agent opened the next turn's session in this moment: look at it afresh.
        async with log.locked(flight.agent.id, QUEUE_SEEN, told) as tx:
            return await _end(tx, flight, outcome, last, leaving=True)


async def _end(
    tx: AgentTx, flight: Flight, outcome: Outcome, last: tuple[Event, ...], leaving: bool
) -> Flight | Rested:
    still_held(tx, flight)
    outcome = _stopped(tx.agent, outcome)
    if flight.deliberates:
        return await _deliberated(tx, flight, outcome, last)
    fates = fates_of(tx.agent, _in_focus(tx, flight), outcome, _ending(flight))
    over = frozenset(one.item_id for one in fates if one.is_over)
    back = attention.after_preemptor(tx.agent, tx.view.deferred, over)
    ended = _ended(flight, outcome, last, flight.turn.item_ids)
    steps = (*last, *left_open(flight.state, flight.epoch), ended)
    mine = (*(event for one in fates for event in one.events), *back)
    then = Nothing() if leaving else await _next(tx, flight, fates, back)
    elsewhere = await _notices(tx, fates)
    line = await lines_for_chat(tx, flight, outcome, fates)
    if line is not None:
        elsewhere.append(line)
        if isinstance(then, Opening):
            then.behind(line)
    return await _over(tx, flight, (mine, steps, elsewhere), then)


async def _deliberated(
    tx: AgentTx, flight: Flight, outcome: Outcome, last: tuple[Event, ...]
) -> Flight | Rested:
    """End a deliberation, whose plan says what follows: it begins even if the worker leaves."""
    applied = await deliberating.conclude(tx, flight, outcome, last)
    over = frozenset((*applied.inline, *applied.dropped))
    back = attention.after_preemptor(tx.agent, tx.view.deferred, over)
    ended = _ended(flight, outcome, last, applied.inline)
    steps = (*last, *left_open(flight.state, flight.epoch), ended)
    begin = deliberating.as_planned(tx, applied)
    then = Other() if begin is None else await opening(tx, flight, begin)
    return await _over(tx, flight, ((*back, *applied.events), steps, []), then)


async def _over(
    tx: AgentTx, flight: Flight, ended: tuple[Events, Events, list[Addition]], then: Following
) -> Flight | Rested:
    """Record the end of a turn, with what follows at once if something does.

    `ended` is what its end adds to the agent's stream, to its session, and elsewhere.
    """
    mine, steps, elsewhere = ended
    if not isinstance(then, Opening):
        await tx.append(
            [
                tx.addition(*mine, released(flight, "done")),
                flight.session_events(*steps),
                *elsewhere,
            ],
            flight.meta,
            flight.fence,
            flight.known(tx.view.edition),
        )
        return Rested(isinstance(then, Other))
    additions = [
        tx.addition(*mine),
        tx.addition(*then.picked, behind=len(mine), meta=then.meta),
        *elsewhere,
        *both(flight, steps, then),
    ]
    known = {**then.known, **flight.known(tx.view.edition)}
    appended = await tx.append(additions, flight.meta, flight.fence, known)
    return then.flight(tx, appended)


def _in_focus(tx: AgentTx, flight: Flight) -> tuple[ItemRow, ...]:
    """The items of the turn as they are now."""
    now = {item.id: item for item in tx.view.focus}
    return tuple(now[item.id] for item in flight.items)


def _ending(flight: Flight) -> Ending:
    names = tuple((fresh_id("dec"), fresh_id("ntf")) for _ in flight.items)
    return Ending(flight.turn.id, flight.epoch, names)


async def fenced(log: Log, flight: Flight, worker: str, refused: tuple[str, ...]) -> None:
    """Record that a late append of this flight was refused."""
    async with log.locked(flight.agent.id, QUEUE_SEEN) as tx:
        current = tx.view.flight.epoch if tx.view.flight else 0
        event = f.FlightFenced(
            agent_id=tx.agent.id,
            epoch=flight.epoch,
            current_epoch=current,
            worker=worker,
            refused=refused,
        )
        await tx.append([tx.addition(event)], Meta(actor=f"worker:{worker}"))


def released(flight: Flight, reason: f.ReleaseReason) -> f.FlightReleased:
    """The event by which a flight lets go of its agent."""
    return f.FlightReleased(agent_id=flight.agent.id, epoch=flight.epoch, reason=reason)


def _agent(flight: Flight) -> str:
    return agent_stream(flight.agent.id)


def still_held(tx: AgentTx, flight: Flight) -> None:
    """Nothing may be decided on what a newer flight has left."""
    current = tx.view.flight
    if current is None or not current.held or current.epoch != flight.epoch:
        raise StaleFlight(flight.agent.id, flight.epoch)


def _stopped(agent: AgentRow, outcome: Outcome) -> Outcome:
    """A stop that was asked for before the end was recorded wins, however the turn ended.

    It wins over a failure too: whoever said stop does not want another attempt.
    """
    by = None if isinstance(agent.attention, Idle) else agent.attention.stop_by
    return outcome if by is None else stopped_outcome(by)


def _ended(
    flight: Flight, outcome: Outcome, last: tuple[Event, ...], item_ids: tuple[str, ...]
) -> s.TurnEnded:
    usage, responses = flight.state.usage, flight.state.responses
    for event in last:
        if isinstance(event, s.ModelResponded):
            usage, responses = usage.plus(event.usage), responses + 1
    return s.TurnEnded(
        turn_id=flight.turn.id,
        session_id=flight.session.id,
        agent_id=flight.agent.id,
        item_ids=item_ids,
        outcome=outcome,
        usage=usage,
        responses=responses,
        tool_calls=flight.state.tool_calls,
        epoch=flight.epoch,
    )


class Nothing(Struct, frozen=True):
    """Nothing follows now."""


class Other(Struct, frozen=True):
    """Something follows that is not simply the start of a turn."""


Events = tuple[Event, ...]
Following = Opening | Nothing | Other


async def _next(
    tx: AgentTx, flight: Flight, fates: tuple[Fate, ...], back: tuple[ItemResurfaced, ...]
) -> Following:
    """The turn that follows at once: the best of what waits, what is requeued included."""
    view = await with_known_types(tx)
    retried = [
        (item, one.event) for item, one in zip(flight.items, fates, strict=True) if one.retry_now
    ]
    due = attention.choose(tx.agent, attention.ready_then(view, retried, back))
    match due:
        case Rest():
            return Other() if attention.resurfacing_after(view, tx.agent) else Nothing()
        case Begin() if due.comes_back or takes_thought(tx.agent, due, view.now):
            return Other()
        case Begin():
            return await opening(tx, flight, due)


async def opening(tx: AgentTx, flight: Flight, begin: Begin) -> Opening:
    """The start of a turn in the flight that ends or sets aside another."""
    if tx.view.edition == flight.edition:
        tx.knows(flight.session.id, SessionLook(flight.session, flight.version))
    return await Opening.of(tx, begin, flight.epoch)


def both(flight: Flight, steps: tuple[Event, ...], opening: Opening) -> list[Addition]:
    """The end of one turn and the start of the next, in one session or in two."""
    if opening.session_id != flight.session.id:
        return [flight.session_events(*steps), opening.session_addition()]
    ended = steps[-1]
    responses = ended.responses if isinstance(ended, s.TurnEnded) else 0
    opening.turns, opening.responses = (
        flight.session.next_index + 1,
        (flight.session.responses + responses),
    )
    opening.version = flight.version + len(steps)
    return [flight.session_events(*steps), opening.session_addition()]


def _is_fresh(view: AgentView, now: datetime) -> bool:
    """Whether the last look was so short a time ago that what time makes due may wait."""
    return (now - view.now).total_seconds() < FRESH_S


def _told_of(outcome: Outcome) -> tuple[str, ...]:
    """The streams of the people who may have to be told of an end like this one."""
    match outcome:
        case Completed() | Cancelled() | Interrupted():
            return ()
        case Incomplete() | Failed() | TimedOut():
            return (user_stream(OWNER),)


async def _notices(tx: AgentTx, fates: tuple[Fate, ...]) -> list[Addition]:
    notices = tuple(one.notice for one in fates if one.notice is not None)
    if not notices:
        return []
    stream = user_stream(notices[0].user_id)
    return [Addition(stream, await tx.locked_version(stream), notices)]
