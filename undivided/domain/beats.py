"""What the clock is about to bring to an agent, as a decision about it sees it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct

from undivided.domain.events.catalogue import Event
from undivided.domain.events.items import Payload
from undivided.domain.ids import digest
from undivided.domain.mailbox import Accept
from undivided.domain.state.agent import AgentRow
from undivided.domain.state.heartbeat import HeartbeatRow
from undivided.domain.state.item import Deferred, ItemRow, Processing, Queued

LATE_S = 60
"""What comes so much after its time was missed while nobody worked."""
CLOCK = "clock"
"""The `actor` of what the clock brings."""


class Overdue(Struct, frozen=True):
    """Something that the agent waits for and that should have come by now."""

    id: str
    label: str
    elapsed_s: float
    session_id: str


class Goal(Struct, frozen=True):
    """Something that the agent works towards."""

    id: str
    title: str
    status: str
    iteration: int
    iterations: int
    criteria: str


class ThereIs(Struct, frozen=True, kw_only=True):
    """What there is to do for an agent, besides what it does anyway."""

    mail: int = 0
    overdue: tuple[Overdue, ...] = ()
    goals: tuple[Goal, ...] = ()
    failed_tasks: tuple[tuple[str, str], ...] = ()
    """Id and title of each."""

    @property
    def fingerprint(self) -> str:
        """The same for the same things; empty where there is nothing."""
        if not (self.mail or self.overdue or self.goals or self.failed_tasks):
            return ""
        goals = [f"{goal.id}:{goal.status}:{goal.iteration}" for goal in self.goals]
        tasks, late = [one for one, _ in self.failed_tasks], [one.id for one in self.overdue]
        parts = (str(self.mail), *(" ".join(sorted(some)) for some in (late, goals, tasks)))
        return digest(parts)


def what_there_is(
    agent: AgentRow,
    beats_waiting: int = 0,
    overdue: tuple[Overdue, ...] = (),
    goals: tuple[Goal, ...] = (),
    failed_tasks: tuple[tuple[str, str], ...] = (),
) -> ThereIs:
    """What an agent has to do; heartbeats that wait are no mail."""
    mail = max(0, agent.waiting - beats_waiting)
    return ThereIs(mail=mail, overdue=overdue, goals=goals, failed_tasks=failed_tasks)


class Seen(Struct, frozen=True, kw_only=True):
    """What is known when the clock's moment has come, under the agent's lock.

    `person`: a person's message waits or is being answered. `beat`, `report` and `consolidation`
    are the last of each, if there was one. `older` is a heartbeat that waits, whoever sent it.
    `news`: something has come, other than by the clock, since the last consolidation.
    """

    now: datetime
    there: ThereIs
    person: bool = False
    beat: ItemRow | None = None
    older: ItemRow | None = None
    report: ItemRow | None = None
    consolidation: ItemRow | None = None
    news: bool = False

    @property
    def joinable(self) -> Mapping[str, ItemRow]:
        """What waits and gives way to a new heartbeat, by its key."""
        older = self.older
        return {} if older is None or older.merge_key is None else {older.merge_key: older}


class Brought(Struct, frozen=True):
    """What a moment leads to: events, and the stimulus that is accepted with them."""

    events: tuple[Event, ...] = ()
    command: Accept | None = None


class Moment(Struct, frozen=True):
    """The agent, its row, what is seen, and the id of what may be enqueued."""

    agent: AgentRow
    row: HeartbeatRow
    seen: Seen
    item_id: str
    room: int
    """How many stimuli the mailbox still takes."""

    def stimulus(self, kind: str, summary: str, content: str, **extra: str) -> Accept:
        """The stimulus that the clock sends."""
        payload = Payload(content, summary=summary, extra=dict(extra))
        return Accept(item_id=self.item_id, source_type=kind, payload=payload)


def unfinished(item: ItemRow | None) -> bool:
    """Whether the one before still waits, is put off, or is at work."""
    return item is not None and isinstance(item.phase, Queued | Processing | Deferred)
