"""What a yield point does to the turn at work: weigh, merge, put off, set aside.

A ruling is made on what was seen without a lock. Here it is carried out under the agent's row
lock, and only if the candidate still waits as it was seen and the turn still has the focus:
otherwise nothing is written, and the next yield point looks again. So a candidate is merged
once or preempts once, whatever else takes it meanwhile.
"""

from __future__ import annotations

from msgspec import Struct

from undivided.domain import attention, interruptions
from undivided.domain.attention import Begin
from undivided.domain.events import sessions as s
from undivided.domain.events.catalogue import Event
from undivided.domain.interrupts import Weighing, live_update
from undivided.domain.merging import composed
from undivided.domain.state.agent import Focused
from undivided.domain.state.item import ItemRow, Queued
from undivided.domain.turn import skipped_for
from undivided.store.flights import QUEUE_SEEN, Flight
from undivided.store.fresh import fresh_id
from undivided.store.landing import both, opening, released, still_held
from undivided.store.log import AgentTx, Log
from undivided.store.looks import ROW_OF

_CANDIDATES = """
SELECT jsonb_set(to_jsonb(i), '{payload,content}',
                 to_jsonb(left(i.payload->>'content', 1600)))::text
  FROM items i
 WHERE i.tenant = %s AND i.agent_id = %s AND i.status = 'queued'
   AND (i.not_before IS NULL OR i.not_before <= clock_timestamp()
        OR i.phase->'coalescing' = 'true')
   AND (i.weighed IS NULL OR i.weighed->>'turn_id' <> %s
        OR (i.weighed->>'merged')::int <> i.merged)
 ORDER BY i.priority, i.seq LIMIT 12"""


class Moved(Struct, frozen=True):
    """The candidate, the turn or the agent is not as it was seen; nothing was written."""


async def candidates(log: Log, flight: Flight) -> tuple[ItemRow, ...]:
    """The best waiting items that were not weighed against this turn, their contents cut."""
    database = log.database
    async with database.connection() as connection:
        cursor = await connection.execute(
            _CANDIDATES, (database.tenant, flight.agent.id, flight.turn.id)
        )
        rows = await cursor.fetchall()
    return attention.known_only(tuple(ROW_OF["items"](text) for (text,) in rows))


async def pass_over(log: Log, flight: Flight, *weighings: Weighing) -> None:
    """Record that candidates were weighed and what was ruled; the turn goes on, or is ended."""
    async with log.locked(flight.agent.id, QUEUE_SEEN) as tx:
        decided = []
        for weighing in weighings:
            candidate = await _still(tx, flight, weighing)
            if candidate is not None:
                decided.append(
                    interruptions.weighed(tx.agent, _at(flight), candidate, weighing, _name())
                )
        if not decided:
            return
        await tx.append([tx.addition(*decided)], flight.meta, flight.fence)
    flight.remembered = None


async def merge(log: Log, flight: Flight, weighing: Weighing) -> None:
    """Take a candidate into the running turn as a live update."""
    async with log.locked(flight.agent.id, QUEUE_SEEN) as tx:
        candidate = await _still(tx, flight, weighing)
        if candidate is None:
            return
        content = composed(candidate, await tx.joined(candidate)).content
        merged = interruptions.merged(
            tx.agent, _at(flight), candidate, weighing, (flight.item, _name())
        )
        updated = s.TurnUpdated(
            turn_id=flight.turn.id, item_id=candidate.id,
            content=live_update(candidate, content), epoch=flight.epoch,
        )  # fmt: skip
        appended = await tx.append(
            [tx.addition(merged), flight.session_events(updated)], flight.meta, flight.fence
        )
    flight.remembered = None
    flight.advance(appended)


async def put_off(log: Log, flight: Flight, weighing: Weighing) -> None:
    """Put a candidate off until the agent is idle."""
    async with log.locked(flight.agent.id, QUEUE_SEEN) as tx:
        candidate = await _still(tx, flight, weighing)
        if candidate is None:
            return
        deferred = interruptions.put_off(tx.agent, _at(flight), candidate, weighing, _name())
        await tx.append([tx.addition(deferred)], flight.meta, flight.fence)
    flight.remembered = None


async def set_aside(
    log: Log, flight: Flight, weighing: Weighing, leaving: bool
) -> Flight | Moved | None:
    """Set the turn aside for a candidate, and begin the candidate's in the same append.

    None: the agent was let go, for the candidate's turn needs another look, or a worker that
    stays.
    """
    async with log.locked(flight.agent.id, QUEUE_SEEN) as tx:
        candidate = await _still(tx, flight, weighing)
        if candidate is None or tx.agent.lifecycle != "started":
            return Moved()
        mine = _preempting(tx, flight, candidate, weighing)
        preempted = s.TurnPreempted(turn_id=flight.turn.id, by=candidate.id, epoch=flight.epoch)
        why = f"a new {candidate.source_type}"
        steps: tuple[Event, ...] = (
            *skipped_for(flight.state, flight.epoch, why),
            preempted,
        )
        begin = Begin(candidate, weighing.others, "preemptor_first")
        if leaving or begin.comes_back:
            await tx.append(
                [tx.addition(*mine, released(flight, "done")), flight.session_events(*steps)],
                flight.meta, flight.fence, flight.known(tx.view.edition),
            )  # fmt: skip
            return None
        then = await opening(tx, flight, begin)
        additions = [
            tx.addition(*mine),
            tx.addition(*then.picked, behind=len(mine), meta=then.meta),
            *both(flight, steps, then),
        ]
        known = {**then.known, **flight.known(tx.view.edition)}
        appended = await tx.append(additions, flight.meta, flight.fence, known)
        return then.flight(tx, appended)


def _preempting(
    tx: AgentTx, flight: Flight, candidate: ItemRow, weighing: Weighing
) -> tuple[Event, ...]:
    names = tuple(_name() for _ in flight.items)
    return (
        interruptions.weighed(tx.agent, _at(flight), candidate, weighing, _name()),
        *interruptions.set_aside(tx.agent, _at(flight), (flight.items, names), weighing),
    )


async def _still(tx: AgentTx, flight: Flight, weighing: Weighing) -> ItemRow | None:
    """The candidate under the lock, if all is as it was seen and nobody asked to stop."""
    still_held(tx, flight)
    focus = tx.agent.attention
    if not isinstance(focus, Focused) or focus.turn_id != flight.turn.id or focus.stop_by:
        return None
    row: ItemRow | None = await tx.row("items", weighing.candidate.id)
    if row is None or not isinstance(row.phase, Queued):
        return None
    return row if row.merged == weighing.candidate.merged else None


def _at(flight: Flight) -> interruptions.At:
    return interruptions.At(flight.turn.id, flight.session.id, flight.epoch)


def _name() -> str:
    return fresh_id("dec")
