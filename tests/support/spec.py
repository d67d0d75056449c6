"""given(history).when(decision).then(events): how the rules about one agent are specified.

The history is folded into rows by the product's own projections; a decision is a function of the
agent as those rows show it, and answers the events that it leads to.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec import Struct

from tests.support.events import BEGAN
from undivided.domain.errors import Undivided
from undivided.domain.events import agents as a
from undivided.domain.events import flights as f
from undivided.domain.events import items as i
from undivided.domain.events import sessions as s
from undivided.domain.events.catalogue import Event
from undivided.domain.policy import DEFAULT_POLICY, adopt
from undivided.domain.recorded import Meta, Recorded, agent_stream, session_stream
from undivided.domain.state.agent import AgentRow, Idle
from undivided.domain.state.item import ItemRow, Queued
from undivided.domain.state.view import AgentView
from undivided.projections.table import Rows, fold

AGENT = "ada"
SESSION = "ses_ada"


class Situation(Struct):
    """An agent after some history: its rows, and what a decision about it would read at `now`."""

    rows: Rows
    now: datetime = BEGAN

    @property
    def agent(self) -> AgentRow:
        """The agent's row."""
        row: AgentRow = self.rows["agents", AGENT]
        return row

    def item(self, item_id: str) -> ItemRow:
        """One item's row."""
        row: ItemRow = self.rows["items", item_id]
        return row

    @property
    def items(self) -> tuple[ItemRow, ...]:
        """Every item, in the order of acceptance."""
        found = [row for (table, _), row in self.rows.items() if table == "items" and row]
        return tuple(sorted(found, key=lambda item: item.seq))

    @property
    def view(self) -> AgentView:
        """What `agent_view` would answer."""
        waiting = [one for one in self.items if _eligible(one, self.now)]
        focus = () if isinstance(self.agent.attention, Idle) else self.agent.attention.item_ids
        return AgentView(
            version=0,
            now=self.now,
            agent=self.agent,
            flight=self.rows.get(("flights", AGENT)),
            queue=tuple(sorted(waiting, key=lambda item: (item.priority, item.seq))),
            focus=tuple(self.item(item_id) for item_id in focus),
        )

    def after(self, seconds: float) -> Situation:
        """The same, some time later."""
        return Situation(self.rows, self.now + timedelta(seconds=seconds))

    def when(self, decision: Callable[[Situation], Any]) -> Decided:
        """Let `decision` be made."""
        return Decided(self, decision)


class Decided(Struct):
    """A decision about a situation, to be compared with what was expected of it."""

    situation: Situation
    decision: Callable[[Situation], Any]

    def then(self, *expected: Any) -> None:
        """It leads to exactly these."""
        answer = self.decision(self.situation)
        assert (answer if isinstance(answer, tuple) else (answer,)) == expected

    def nothing(self) -> None:
        """It leads to nothing."""
        self.then()

    def refused(self, kind: type[Undivided], code: str = "") -> None:
        """It is refused, by a rule of that name if one is given."""
        with pytest.raises(kind) as refusal:
            self.decision(self.situation)
        assert not code or refusal.value.code == code


def given(*history: Event, **policy: Any) -> Situation:
    """An agent that was just created, with parameters of its own, and what happened since."""
    born = a.AgentCreated(
        agent_id=AGENT, name="Ada", definition=None, model="default", instructions="",
        tools=None, policy=adopt(DEFAULT_POLICY, policy),
    )  # fmt: skip
    rows: Rows = {}
    fold(rows, [recorded(n, event) for n, event in enumerate((born, *history), start=1)])
    return Situation(rows)


def recorded(number: int, event: Event, at: datetime = BEGAN) -> Recorded:
    """An event in its envelope."""
    in_session = type(event).__module__ == s.__name__
    stream = session_stream(SESSION) if in_session else agent_stream(AGENT)
    return Recorded(f"e{number}", stream, number, event, Meta(), at)


def accepted(
    item_id: str = "i1", kind: str = "human_chat", priority: int = 0, **fields: Any
) -> i.StimulusAccepted:
    """A stimulus is in the mailbox; the number in its id is its place."""
    seq = int("".join(c for c in item_id if c.isdigit()))
    payload = fields.pop("payload", i.Payload(f"content of {item_id}"))
    return i.StimulusAccepted(
        agent_id=AGENT, item_id=item_id, seq=seq, source_type=kind, priority=priority,
        payload=payload, sender=i.Sender(), delivery="queue", **fields,
    )  # fmt: skip


def acquired(epoch: int = 1, worker: str = "wrk_1") -> f.FlightAcquired:
    """A worker holds the agent."""
    return f.FlightAcquired(agent_id=AGENT, epoch=epoch, worker=worker)


def released(epoch: int = 1, reason: f.ReleaseReason = "yielded") -> f.FlightReleased:
    """It let go."""
    return f.FlightReleased(agent_id=AGENT, epoch=epoch, reason=reason)


def _eligible(item: ItemRow, now: datetime) -> bool:
    phase = item.phase
    return isinstance(phase, Queued) and (phase.not_before is None or phase.not_before <= now)
