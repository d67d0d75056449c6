"""The other transactions of a flight: step, note, suspend, yield, end, and being fenced.

*Ending* and *nothing eligible waits* are one check, about one version of the agent's stream,
which accepting a stimulus raises: a stimulus is either seen here and picked at once, or its
acceptance sees the agent idle and rings the doorbell. A turn that ends soon after its agent was
looked at goes by that look, and is refused if anything was accepted since. It does so only if
nothing else waits, or the look shows what comes next; any other takes the agent's row lock and
looks again.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime

from undivided.domain import attention
from undivided.domain.agents import note
from undivided.domain.attention import Begin, Rest
from undivided.domain.endings import OWNER, Ending, Fate, fate, stopped_outcome
from undivided.domain.errors import Conflict, StaleFlight
from undivided.domain.events import flights as f
from undivided.domain.events import sessions as s
from undivided.domain.events.catalogue import Event
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
from undivided.domain.state.view import AgentView
from undivided.domain.tooling import Noted
from undivided.domain.turn import left_open
from undivided.domain.waits import Wait
from undivided.store.codec import unescape_text
from undivided.store.database import TENANT
from undivided.store.flights import QUEUE_SEEN, Flight, Opening, with_known_types
from undivided.store.fresh import fresh_id
from undivided.store.log import Addition, AgentTx, Log
from undivided.store.looks import SessionLook
from undivided.store.memory import FRESH_S


async def record(log: Log, flight: Flight, *steps: Event) -> None:
    """Record steps in one round trip.

    Raises:
        StaleFlight, Conflict: the flight is lost; nothing was written.
    """
    flight.advance(await log.append([flight.session_events(*steps)], flight.meta, flight.fence))


async def record_noting(
    log: Log, flight: Flight, finished: s.ToolCallFinished, noted: Sequence[Noted]
) -> None:
    """Record a tool's result together with what it leaves in working memory."""
    async with log.locked(flight.agent.id, QUEUE_SEEN) as tx:
        keys = await _memory_keys(tx)
        events: list[Event] = []
        for one in noted:
            event = note(tx.agent, keys, (one.key, one.content), flight.turn.id)
            keys = (*(k for k in keys if k not in (one.key, *event.evicted)), one.key)
            events.append(event)
        appended = await tx.append(
            [tx.addition(*events), flight.session_events(finished)], flight.meta, flight.fence
        )
    flight.remembered = None
    flight.advance(appended)


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
            [tx.addition(suspended, _released(flight, "suspended")), flight.session_events(waits)],
            flight.meta,
            flight.fence,
            flight.known(tx.view.edition),
        )


async def yield_to_others(log: Log, flight: Flight) -> None:
    """Let go of the agent between two steps; its turn stays at work for the next worker."""
    async with log.locked(flight.agent.id, QUEUE_SEEN) as tx:
        yielded = s.TurnYielded(turn_id=flight.turn.id, epoch=flight.epoch)
        await tx.append(
            [tx.addition(_released(flight, "yielded")), flight.session_events(yielded)],
            flight.meta,
            flight.fence,
            flight.known(tx.view.edition),
        )


async def end(
    log: Log, flight: Flight, outcome: Outcome, last: tuple[Event, ...], leaving: bool
) -> Flight | None:
    """End the turn and, unless the worker is leaving, begin the next one in the same append.

    `last` are steps that belong to the end, such as the final response. Answers the flight
    with its next turn, or None once the agent is let go.

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
) -> Flight | None:
    _still_held(tx, flight)
    outcome = _stopped(tx.agent, outcome)
    ending = Ending(flight.turn.id, flight.epoch, fresh_id("dec"), fresh_id("ntf"))
    item = next(i for i in tx.view.focus if i.id == flight.item.id)
    item_fate = fate(tx.agent, item, outcome, ending)
    steps = (*last, *left_open(flight.state, flight.epoch), _ended(flight, outcome, last))
    opening = None if leaving else await _next(tx, flight, item_fate)
    if opening is None:
        mine = tx.addition(item_fate.event, _released(flight, "done"))
        await tx.append(
            [mine, flight.session_events(*steps), *await _notice(tx, item_fate)],
            flight.meta,
            flight.fence,
            flight.known(tx.view.edition),
        )
        return None
    additions = [
        tx.addition(item_fate.event),
        tx.addition(opening.picked, behind=1, meta=opening.meta),
        *_both(flight, steps, opening),
        *await _notice(tx, item_fate),
    ]
    known = {**opening.known, **flight.known(tx.view.edition)}
    appended = await tx.append(additions, flight.meta, flight.fence, known)
    return opening.flight(tx, appended)


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


def _released(flight: Flight, reason: f.ReleaseReason) -> f.FlightReleased:
    return f.FlightReleased(agent_id=flight.agent.id, epoch=flight.epoch, reason=reason)


def _agent(flight: Flight) -> str:
    return agent_stream(flight.agent.id)


def _still_held(tx: AgentTx, flight: Flight) -> None:
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


def _ended(flight: Flight, outcome: Outcome, last: tuple[Event, ...]) -> s.TurnEnded:
    usage, responses = flight.state.usage, flight.state.responses
    for event in last:
        if isinstance(event, s.ModelResponded):
            usage, responses = usage.plus(event.usage), responses + 1
    return s.TurnEnded(
        turn_id=flight.turn.id,
        session_id=flight.session.id,
        agent_id=flight.agent.id,
        item_ids=flight.turn.item_ids,
        outcome=outcome,
        usage=usage,
        responses=responses,
        tool_calls=flight.state.tool_calls,
        epoch=flight.epoch,
    )


async def _next(tx: AgentTx, flight: Flight, item_fate: Fate) -> Opening | None:
    """The turn that follows at once: the best of what waits, the requeued item included."""
    queue = attention.known_only((await with_known_types(tx)).queue)
    if item_fate.retry_now:
        queue = (*queue, attention.as_requeued(flight.item, item_fate.event))
    due = attention.choose(tx.agent, queue)
    match due:
        case Rest():
            return None
        case Begin():
            if tx.view.edition == flight.edition:
                tx.knows(flight.session.id, SessionLook(flight.session, flight.version))
            return await Opening.of(tx, due, flight.epoch)


def _both(flight: Flight, steps: tuple[Event, ...], opening: Opening) -> list[Addition]:
    """The end of one turn and the start of the next, in one session or in two."""
    if opening.session_id != flight.session.id:
        return [flight.session_events(*steps), opening.session_addition()]
    ended = steps[-1]
    responses = ended.responses if isinstance(ended, s.TurnEnded) else 0
    opening.turns, opening.responses = (
        flight.session.turns + 1,
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


async def _notice(tx: AgentTx, item_fate: Fate) -> list[Addition]:
    if item_fate.notice is None:
        return []
    stream = user_stream(item_fate.notice.user_id)
    return [Addition(stream, await tx.locked_version(stream), (item_fate.notice,))]


async def _memory_keys(tx: AgentTx) -> tuple[str, ...]:
    cursor = await tx.connection.execute(
        "SELECT key FROM memories WHERE tenant = %s AND agent_id = %s ORDER BY noted_at, key",
        (TENANT, tx.agent.id),
    )
    return tuple(unescape_text(key) for (key,) in await cursor.fetchall())
