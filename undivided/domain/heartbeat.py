"""The heartbeat: a regular look at what there is to do, when nothing else gives occasion for one.

A beat is an ordinary stimulus of low priority, enqueued when its slot has come. Slots stand a
pace apart and do not drift; those that have passed meanwhile bring one beat, not several. A beat
that finds nothing to do, as the one before it did, is not enqueued; after three such in a row the
agent sleeps deeply: its pace is doubled until something reaches it.
"""

from __future__ import annotations

from datetime import datetime

from undivided.domain.active_hours import hours_of, is_active, next_slot
from undivided.domain.beats import LATE_S, Brought, Moment, unfinished
from undivided.domain.errors import Rejected
from undivided.domain.events import heartbeats as h
from undivided.domain.heartbeat_prompt import prompt
from undivided.domain.pace import IDLE_BEATS, again_at, pace_after
from undivided.domain.state.agent import AgentRow
from undivided.domain.state.heartbeat import HeartbeatRow
from undivided.domain.stimuli import HEARTBEAT

SUMMARY = "Heartbeat check-in"


def woken(agent: AgentRow, row: HeartbeatRow) -> bool:
    """Whether something has reached the agent since its last beat was decided about."""
    return agent.changed_at > row.judged_at


def idle_beats(agent: AgentRow, row: HeartbeatRow) -> int:
    """How many beats in a row found nothing to do, up to now."""
    return 0 if woken(agent, row) else row.streak


def sleeps_deeply(agent: AgentRow, row: HeartbeatRow) -> bool:
    """Whether the agent's pace is the longer one."""
    return idle_beats(agent, row) >= IDLE_BEATS


def beats_at(agent: AgentRow, row: HeartbeatRow) -> datetime | None:
    """When its heart beats next; None while it does not."""
    if not row.enabled or row.lifecycle != "started":
        return None
    return row.awake_at if row.awake_at is not None and woken(agent, row) else row.next_at


def beat(moment: Moment) -> Brought:
    """What the agent's heart does now."""
    agent, row, seen = moment.agent, moment.row, moment.seen
    slot = beats_at(agent, row)
    if slot is None or slot > seen.now:
        return Brought()
    missed_s = (seen.now - _wanted_since(agent, row, slot)).total_seconds()
    if missed_s > LATE_S and not row.put_off:
        later = again_at(row.id, seen.now, row.interval_s)
        return Brought((h.HeartbeatScheduled(agent_id=agent.id, next_at=later, missed_s=missed_s),))
    reason = _why_not(moment)
    if reason is not None:
        return Brought((_skipped(moment, slot, reason),))
    hours = hours_of(agent.policy)
    following = next_slot(hours, slot, row.interval_s, seen.now)
    return _enqueued(moment, "timer", following)


def beat_asked_for(moment: Moment) -> Brought:
    """The beat that a person asks for: at any hour, and even if there is nothing to do.

    Raises:
        Rejected: the agent is not started, or its heart does not beat; a person's message comes
            first; the last beat is not over.
    """
    agent, seen = moment.agent, moment.seen
    if agent.lifecycle != "started" or not moment.row.enabled:
        raise Rejected("heartbeat_off", f"the heart of agent {agent.id} does not beat; start it")
    if seen.person:
        raise Rejected("person_first", f"agent {agent.id} has a person's message to answer first")
    if unfinished(seen.beat):
        raise Rejected("heartbeat_waits", f"the last heartbeat of agent {agent.id} is not over")
    return _enqueued(moment, "person", None)


def _wanted_since(agent: AgentRow, row: HeartbeatRow, slot: datetime) -> datetime:
    """Since when the beat has been due: not before whatever woke the agent for it."""
    asleep = row.awake_at is not None and woken(agent, row)
    return max(slot, agent.changed_at) if asleep else slot


def _why_not(moment: Moment) -> h.BeatSkipped | None:
    agent, row, seen = moment.agent, moment.row, moment.seen
    if not is_active(hours_of(agent.policy), seen.now):
        return "outside_hours"
    if seen.person:
        return "person_first"
    if unfinished(seen.beat):
        return "still_there"
    if moment.room < 1:
        return "mailbox_full"
    return "idle" if seen.there.fingerprint == row.fingerprint == "" else None


def _skipped(moment: Moment, slot: datetime, reason: h.BeatSkipped) -> h.HeartbeatSkipped:
    agent, row, now = moment.agent, moment.row, moment.seen.now
    streak = idle_beats(agent, row)
    if reason == "idle":
        streak += 1
    elif reason != "outside_hours":
        streak = 0
    hours, pace = hours_of(agent.policy), pace_after(row.interval_s, streak)
    soon = next_slot(hours, slot, row.interval_s, now)
    deep = pace > row.interval_s
    return h.HeartbeatSkipped(
        agent_id=agent.id,
        reason=reason,
        streak=streak,
        pace_s=pace,
        next_at=next_slot(hours, slot, pace, now) if deep else soon,
        awake_at=soon if deep else None,
    )


def _enqueued(moment: Moment, by: h.AskedBy, following: datetime | None) -> Brought:
    seen, there = moment.seen, moment.seen.there
    told = h.HeartbeatEnqueued(
        agent_id=moment.agent.id, item_id=moment.item_id, by=by,
        fingerprint=there.fingerprint, next_at=following,
        overdue=tuple(one.id for one in there.overdue),
    )  # fmt: skip
    text = prompt(there, seen.beat, moment.row.last_at)
    return Brought((told,), moment.stimulus(HEARTBEAT, SUMMARY, text, by=by))
