"""An agent as its own decisions see it."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from undivided.domain.policy import Policy
from undivided.domain.value import Value
from undivided.domain.waits import Wait

Lifecycle = Literal["started", "paused", "stopped", "deleted"]


class Idle(Value, frozen=True, tag="idle"):
    """Nothing is in focus."""

    since: datetime


class Focused(Value, frozen=True, tag="focused"):
    """A turn is at work on `item_ids`; `stop_by` names who asked it to stop.

    In a deliberation there are none: those `considered` wait meanwhile, the head first.
    """

    turn_id: str
    session_id: str
    item_ids: tuple[str, ...]
    epoch: int
    since: datetime
    stop_by: str | None = None
    mode: Literal["working", "deliberating"] = "working"
    considered: tuple[str, ...] = ()


class Suspended(Value, frozen=True, tag="suspended"):
    """A turn waits until `until` at the latest and holds nothing."""

    turn_id: str
    session_id: str
    item_ids: tuple[str, ...]
    wait: Wait
    since: datetime
    until: datetime
    stop_by: str | None = None
    answer: str | None = None
    """What the waiting call is answered with, once that has come."""


Attention = Idle | Focused | Suspended


class Triage(Value, frozen=True, kw_only=True):
    """What the last triage came to, in short; see `triage.applied`."""

    turn_id: str | None
    primary: str
    batch: tuple[str, ...]
    inline: tuple[str, ...]
    deferred: tuple[str, ...]
    dropped: tuple[str, ...]
    reasoning: str
    aborted: bool
    at: datetime
    undecided_below: int = 0
    """Without a plan: the items that came before this place were considered in vain."""


class AgentRow(Value, frozen=True, kw_only=True):
    """One agent: configuration, attention, and the counters that accepting reads.

    `waiting` counts the queued items, `next_seq` is the place the next stimulus gets.
    """

    id: str
    name: str
    definition: str | None
    model: str
    instructions: str
    tools: tuple[str, ...] | None
    policy: Policy
    policy_version: int
    team_id: str | None
    heartbeat_interval_s: float | None
    lifecycle: Lifecycle
    attention: Attention
    waiting: int
    next_seq: int
    created_at: datetime
    changed_at: datetime
    deferred: int = 0
    """Items that are put off."""
    merged: int = 0
    """Items that have joined others."""
    dropped: int = 0
    """Items that were discarded."""
    user_id: str | None = None
    """The person who wrote last."""
    last_triage: Triage | None = None


class FlightRow(Value, frozen=True, kw_only=True):
    """Who holds an agent. `held` is false between flights; the epoch never falls."""

    id: str
    epoch: int
    worker: str
    held: bool
    since: datetime


class MemoryRow(Value, frozen=True, kw_only=True):
    """One entry of an agent's working memory; `id` is `<agent id>/<key>`."""

    id: str
    agent_id: str
    key: str
    content: str
    noted_at: datetime
