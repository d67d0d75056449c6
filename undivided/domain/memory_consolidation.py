"""Memory consolidation: every few hours an agent goes over what came, and keeps what matters.

Where nothing has come since the last time there is nothing to go over, and no model is asked.
"""

from __future__ import annotations

from datetime import datetime

from undivided.domain.beats import LATE_S, Brought, Moment, unfinished
from undivided.domain.events import heartbeats as h
from undivided.domain.pace import SHORTEST_S, again_at, of_memory, slot_after
from undivided.domain.stimuli import MEMORY_CONSOLIDATION

SUMMARY = "Memory consolidation"
PROMPT = """Consolidate your memory. Go over what has happened since the last time: what did you
learn, decide or promise that will still matter? Keep it in memory, in few words, under keys that
you will find again. Correct what has turned out to be wrong, and leave out what is over."""


def consolidate(moment: Moment) -> Brought:
    """What the time of a consolidation leads to."""
    row, now = moment.row, moment.seen.now
    if row.consolidate_at is None or row.consolidate_at > now or row.lifecycle != "started":
        return Brought()
    every = max(row.consolidate_s, SHORTEST_S)
    following = slot_after(row.consolidate_at, every, now)
    if (now - row.consolidate_at).total_seconds() > LATE_S:
        following = again_at(of_memory(row.id), now, every)
        return Brought((_skipped(moment, "missed", following),))
    reason = _why_not(moment)
    if reason is not None:
        return Brought((_skipped(moment, reason, following),))
    told = h.MemoryConsolidationEnqueued(
        agent_id=row.id, item_id=moment.item_id, next_seq=moment.agent.next_seq, next_at=following
    )
    return Brought((told,), moment.stimulus(MEMORY_CONSOLIDATION, SUMMARY, PROMPT))


def _why_not(moment: Moment) -> h.ConsolidationSkipped | None:
    if not moment.seen.news:
        return "nothing_new"
    if unfinished(moment.seen.consolidation):
        return "still_there"
    return "mailbox_full" if moment.room < 1 else None


def _skipped(
    moment: Moment, reason: h.ConsolidationSkipped, following: datetime
) -> h.MemoryConsolidationSkipped:
    return h.MemoryConsolidationSkipped(agent_id=moment.row.id, reason=reason, next_at=following)
