"""Sessions, turns, activities, decisions and notices as rows."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from undivided.domain.dialogue import Usage
from undivided.domain.outcomes import Outcome
from undivided.domain.value import Value
from undivided.domain.waits import Wait

SessionStatus = Literal["active", "archived", "deleted"]


class SessionRow(Value, frozen=True, kw_only=True):
    """One conversation of one agent; `turns` and `responses` number what comes next."""

    id: str
    agent_id: str
    status: SessionStatus
    binding: dict[str, str]
    active_turn: str | None
    turns: int
    responses: int
    usage: Usage
    opened_at: datetime
    changed_at: datetime
    set_aside: tuple[str, ...] = ()
    """Turns that were preempted and will go on."""

    @property
    def next_index(self) -> int:
        """The number of the turn that begins next, while none is at work."""
        return self.turns + len(self.set_aside)


class TurnRunning(Value, frozen=True, tag="running", tag_field="status"):
    """It is at work until `deadline` at the latest."""

    deadline: datetime


class TurnWaiting(Value, frozen=True, tag="suspended", tag_field="status"):
    """It waits in `call_id`; `left_s` of its backstop remain for afterwards."""

    call_id: str
    wait: Wait
    since: datetime
    until: datetime
    left_s: float


class TurnOver(Value, frozen=True, tag="ended", tag_field="status"):
    """It ended."""

    outcome: Outcome
    ended_at: datetime


class TurnSetAside(Value, frozen=True, tag="set_aside", tag_field="status"):
    """It was preempted by the item `by`; `left_s` of its backstop remain for afterwards.

    `waiting` is what it waits for meanwhile, if it does.
    """

    by: str
    since: datetime
    left_s: float
    waiting: TurnWaiting | None = None


TurnPhase = TurnRunning | TurnWaiting | TurnSetAside | TurnOver


class TurnRow(Value, frozen=True, kw_only=True):
    """One turn; its steps are the events of its session from `first_version` on."""

    id: str
    agent_id: str
    session_id: str
    item_ids: tuple[str, ...]
    scenario: str
    origin: str
    index: int
    responses_before: int
    phase: TurnPhase
    flights: int
    """How many flights have worked on it; more than one after crashes, yields and waits."""
    orphaned: int
    """How many of these flights were lost without a word: a poisonous item shows here."""
    usage: Usage
    first_version: int
    last_version: int | None
    started_at: datetime


class ActivityRow(Value, frozen=True, kw_only=True):
    """What was done about an item, in one turn; `id` is the turn's."""

    id: str
    agent_id: str
    item_id: str
    session_id: str
    type: str
    summary: str
    outcome: str | None
    started_at: datetime
    ended_at: datetime | None


class DecisionRow(Value, frozen=True, kw_only=True):
    """One decision of an agent's attention, and the event that carried it out."""

    id: str
    agent_id: str
    type: str
    rule: str
    reasoning: str
    item_id: str
    turn_id: str | None
    inputs: dict[str, str | int | float | bool | None]
    losers: tuple[str, ...]
    policy_version: int
    version: int
    """Version of the event in the agent's stream."""
    made_at: datetime


class NoticeRow(Value, frozen=True, kw_only=True):
    """Something people were told."""

    id: str
    user_id: str
    agent_id: str
    item_id: str
    kind: str
    text: str
    posted_at: datetime
