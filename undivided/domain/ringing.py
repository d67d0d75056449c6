"""All that the clock brings to an agent at one moment, decided together."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from undivided.domain.beats import Brought, Moment, Seen
from undivided.domain.daily_report import report
from undivided.domain.events.catalogue import Event
from undivided.domain.heartbeat import beat
from undivided.domain.mailbox import Accept, accept
from undivided.domain.memory_consolidation import consolidate
from undivided.domain.state.agent import AgentRow
from undivided.domain.state.heartbeat import HeartbeatRow

BRINGS: tuple[Callable[[Moment], Brought], ...] = (beat, report, consolidate)
"""What the clock can bring, in the order in which it enters the mailbox."""


def rings(
    agent: AgentRow, row: HeartbeatRow, seen: Seen, item_ids: Sequence[str]
) -> tuple[Event, ...]:
    """The events of this moment; none where nothing is due. One id for each of `BRINGS`."""
    events: list[Event] = []
    commands: list[Accept] = []
    room = agent.policy.mailbox_capacity - agent.waiting
    for brings, item_id in zip(BRINGS, item_ids, strict=True):
        brought = brings(Moment(agent, row, seen, item_id, room - len(commands)))
        events += brought.events
        commands += [brought.command] if brought.command is not None else []
    accepted = accept(agent, tuple(commands), seen.joinable) if commands else ()
    return (*accepted, *events)
