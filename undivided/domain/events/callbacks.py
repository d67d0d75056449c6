"""Events of what an agent will hear of later; stream `agent:<id>`.

A callback is something that an agent waits for without waiting: a moment, the end of a process,
another agent's reply.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from undivided.domain.value import Value

CallbackType = Literal["background_exec", "wakeup", "a2a_reply"]
CallbackDelivery = Literal["in_session", "mailbox"]
Misfire = Literal["skip", "once", "all"]
"""What slots of a recurring wakeup bring that passed while nobody looked: one item for all of
them, nothing, or one item each."""


class CallbackRegistered(Value, frozen=True, kw_only=True):
    """An agent will hear of something: at `wake_at`, or when it is over.

    A process runs on `host`, for `limit_s` at most. Without `timeout_s` the callback is never
    late.
    """

    agent_id: str
    callback_id: str
    type: CallbackType
    delivery: CallbackDelivery
    origin_session_id: str
    turn_id: str | None = None
    command: str = ""
    note: str = ""
    correlation_id: str | None = None
    wake_at: datetime | None = None
    recurring_s: float | None = None
    timeout_s: float | None = None
    host: str | None = None
    limit_s: float | None = None
    misfire: Misfire = "once"


class CallbackRearmed(Value, frozen=True, kw_only=True):
    """A recurring wakeup came, as `item_ids`, and comes again; `missed` slots brought nothing."""

    agent_id: str
    callback_id: str
    wake_at: datetime
    item_ids: tuple[str, ...]
    missed: int = 0


class CallbackResolved(Value, frozen=True, kw_only=True):
    """What was waited for is there, and reached the mailbox as `item_ids`.

    `vanished`: its process is gone and nobody knows how it ended. `late`: the agent had been told
    already that it was overdue.
    """

    agent_id: str
    callback_id: str
    how: Literal["fired", "completed", "vanished"]
    item_ids: tuple[str, ...]
    late: bool = False
    exit_code: int | None = None


class CallbackCancelled(Value, frozen=True, kw_only=True):
    """Nobody wants to hear of it any more."""

    agent_id: str
    callback_id: str
    by: str
