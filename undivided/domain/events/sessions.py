"""Events of a session: its turns and their steps; stream `session:<id>`.

Only the flight that holds the session's agent writes here while a turn is at work, so a
version conflict on this stream always means a lost flight.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import field

from undivided.domain.dialogue import ToolCall, Usage
from undivided.domain.events.people import NotificationPriority
from undivided.domain.outcomes import Outcome
from undivided.domain.plans import Plan
from undivided.domain.tooling import Effect
from undivided.domain.value import Value
from undivided.domain.waits import Wait

Resolution = Literal["returned", "raised", "interrupted", "skipped", "waited", "woken", "answered"]
ResumeCause = Literal["orphaned", "yielded", "waited", "woken", "stopped", "answered", "preempted"]

NudgeReason = Literal["marker_missing", "no_comment", "no_action", "items_forgotten"]


class SessionOpened(Value, frozen=True, kw_only=True):
    """A conversation began; `binding` is where its replies are delivered, if anywhere."""

    session_id: str
    agent_id: str
    binding: dict[str, str] = field(default_factory=dict)


class SessionArchived(Value, frozen=True, kw_only=True):
    """The session takes no more stimuli; it can still be read."""

    session_id: str


class SessionDeleted(Value, frozen=True, kw_only=True):
    """The session is gone for its users; its events stay until retention removes them."""

    session_id: str


class TurnStarted(Value, frozen=True, kw_only=True):
    """A stretch of thinking about `item_ids` began; `input` is what the model is told."""

    turn_id: str
    session_id: str
    agent_id: str
    item_ids: tuple[str, ...]
    scenario: str
    origin: str
    index: int
    responses_before: int
    input: str
    epoch: int
    backstop_s: float


class ModelResponded(Value, frozen=True, kw_only=True):
    """One model response; never asked for again. `step` counts them from 0 in the turn.

    `text` is without the completion marker; `marked` says that there was one.
    """

    turn_id: str
    step: int
    text: str
    calls: tuple[ToolCall, ...]
    usage: Usage
    model: str
    epoch: int
    marked: bool = False


class ToolCallStarted(Value, frozen=True, kw_only=True):
    """A tool is about to run; what a crash does to it is said by `effect`."""

    turn_id: str
    call_id: str
    tool: str
    args: dict[str, Any]
    effect: Effect
    idempotency_key: str
    epoch: int


class ToolCallFinished(Value, frozen=True, kw_only=True):
    """The one result of a call; `content` is what the model reads."""

    turn_id: str
    call_id: str
    tool: str
    resolution: Resolution
    content: str
    epoch: int


class TurnSuspended(Value, frozen=True, kw_only=True):
    """The turn waits inside `call_id`; a timer ends the wait after `wait_s` seconds."""

    turn_id: str
    call_id: str
    wait: Wait
    wait_s: float
    epoch: int


class TurnResumed(Value, frozen=True, kw_only=True):
    """The turn goes on from its last recorded step, in flight `epoch`.

    `left_s` is what is left of its backstop, where that is not what was left when it stopped.
    """

    turn_id: str
    cause: ResumeCause
    epoch: int
    left_s: float | None = None


class TurnYielded(Value, frozen=True, kw_only=True):
    """The worker is leaving; another one carries on from the last step."""

    turn_id: str
    epoch: int


class TurnUpdated(Value, frozen=True, kw_only=True):
    """Something new about what the turn is at work on went into its transcript: a live update."""

    turn_id: str
    item_id: str
    content: str
    epoch: int


class TurnNudged(Value, frozen=True, kw_only=True):
    """The turn was asked, once, to go on: its last response left `reason` open."""

    turn_id: str
    reason: NudgeReason
    content: str
    epoch: int


class TurnPreempted(Value, frozen=True, kw_only=True):
    """The turn is set aside for the item `by`, and goes on from its last step later."""

    turn_id: str
    by: str
    epoch: int


class MessagePosted(Value, frozen=True, kw_only=True):
    """The agent said something of its own accord, in `turn_id`, to whoever reads the session.

    `priority`, task and requirement are what it says that the message is about.
    """

    session_id: str
    agent_id: str
    turn_id: str
    source: Literal["notify_user", "escalation"]
    content: str
    priority: NotificationPriority
    task_id: str | None = None
    requirement_id: str | None = None


class DeliberationPlanned(Value, frozen=True, kw_only=True):
    """The turn has decided about all that it considered; carrying it out ends the turn."""

    turn_id: str
    plan: Plan
    epoch: int


class TurnEnded(Value, frozen=True, kw_only=True):
    """The turn is over; `usage` and `responses` are its totals."""

    turn_id: str
    session_id: str
    agent_id: str
    item_ids: tuple[str, ...]
    outcome: Outcome
    usage: Usage
    responses: int
    tool_calls: int
    epoch: int
