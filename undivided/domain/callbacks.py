"""Callbacks: what an agent will hear of without waiting for it.

A moment, the end of a process, another agent's reply. Each is delivered once: into the session
that registered it, as a `callback_result`, or as a fresh `system_event` of its own.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec import Struct

from undivided.domain.beats import Overdue
from undivided.domain.errors import Invalid
from undivided.domain.events.callbacks import (
    CallbackCancelled,
    CallbackDelivery,
    CallbackRearmed,
    CallbackRegistered,
    CallbackResolved,
    Misfire,
)
from undivided.domain.events.items import Payload, Sender
from undivided.domain.mailbox import Accept
from undivided.domain.state.callback import CallbackRow, Pending, TimedOut
from undivided.domain.stimuli import CALLBACK_RESULT, SYSTEM_EVENT
from undivided.domain.tooling import Act

DEFAULT_LIMIT_S = 300.0
"""How long a command may run, unless the agent says otherwise."""
LEAST_PATIENCE_S, BEYOND_LIMIT_S = 600.0, 60.0
REPLY_PATIENCE_S = 1800.0
SOONEST_RECURRENCE_S = 1.0
MISSED_AFTER_S = 60.0
"""How late a slot may be looked at and still count as met, where what is missed is skipped."""
ALL_AT_MOST = 20
"""Items that missed slots bring at most, where each brings one."""
LABEL_CUT, COMMAND_CUT = 120, 80
GENERIC_NOTE = "Scheduled wakeup"
LONGEST_S = 366 * 86_400.0
PENDING_AT_MOST = 1000
"""Callbacks that one agent can have pending; what it was told is overdue may never come."""


class ScheduleWakeup(Act, frozen=True):
    """Wake the agent at `at`, or in `in_s`, and then every `recurring_s`."""

    in_s: float | None
    at: str | None
    recurring_s: float | None
    note: str
    delivery: CallbackDelivery
    misfire: Misfire = "once"


class CancelWakeup(Act, frozen=True):
    """Take a wakeup back."""

    wakeup_id: str


class RunInBackground(Act, frozen=True):
    """Run a shell command that the turn does not wait for."""

    command: str
    limit_s: float


class Unsent(Act, frozen=True):
    """The message whose reply was awaited was refused; `why` is what the model reads."""

    callback_id: str
    why: str


class Asking(Struct, frozen=True):
    """Who registers a callback: the agent, its turn and session, and the fresh id."""

    agent_id: str
    turn_id: str
    session_id: str
    callback_id: str


def wakeup(act: ScheduleWakeup, asking: Asking, now: datetime) -> CallbackRegistered:
    """Register a wakeup; a moment that has passed comes at once.

    Raises:
        Invalid: it says neither when nor in how many seconds.
    """
    recurring_s = act.recurring_s if act.recurring_s and act.recurring_s > 0 else None
    if recurring_s is not None and not SOONEST_RECURRENCE_S <= recurring_s <= LONGEST_S:
        raise Invalid("recurring_seconds is between 1 and 31622400")
    return CallbackRegistered(
        agent_id=asking.agent_id, callback_id=asking.callback_id, type="wakeup",
        delivery=act.delivery, origin_session_id=asking.session_id, turn_id=asking.turn_id,
        note=act.note.strip() or GENERIC_NOTE, wake_at=_moment(act, now),
        recurring_s=recurring_s, misfire=act.misfire,
    )  # fmt: skip


def _moment(act: ScheduleWakeup, now: datetime) -> datetime:
    if act.in_s is not None and act.in_s > 0:
        if act.in_s > LONGEST_S:
            raise Invalid("in_seconds is at most 31622400")
        return now + timedelta(seconds=act.in_s)
    try:
        at = datetime.fromisoformat(act.at or "")
        # In UTC, or it could be stored and not be read again: year 1 has a zone before it.
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):
        raise Invalid("say in_seconds, or at as an ISO 8601 time") from None


def background(act: RunInBackground, asking: Asking, host: str) -> CallbackRegistered:
    """Register a process that runs on `host`."""
    return CallbackRegistered(
        agent_id=asking.agent_id, callback_id=asking.callback_id, type="background_exec",
        delivery="in_session", origin_session_id=asking.session_id, turn_id=asking.turn_id,
        command=act.command, host=host, limit_s=act.limit_s,
        timeout_s=max(LEAST_PATIENCE_S, act.limit_s + BEYOND_LIMIT_S),
    )  # fmt: skip


def reply(conversation_id: str, note: str, asking: Asking) -> CallbackRegistered:
    """Register another agent's reply: the next message of the conversation."""
    return CallbackRegistered(
        agent_id=asking.agent_id, callback_id=asking.callback_id, type="a2a_reply",
        delivery="in_session", origin_session_id=asking.session_id, turn_id=asking.turn_id,
        note=note, correlation_id=conversation_id, timeout_s=REPLY_PATIENCE_S,
    )  # fmt: skip


def cancelled(row: CallbackRow, by: str) -> CallbackCancelled | None:
    """Take a callback back; None if it is over already."""
    if not is_open(row):
        return None
    return CallbackCancelled(agent_id=row.agent_id, callback_id=row.id, by=by)


def is_open(row: CallbackRow) -> bool:
    """Whether something of it is still to come."""
    return isinstance(row.phase, Pending | TimedOut)


def is_due(row: CallbackRow, now: datetime) -> bool:
    """Whether the time of a wakeup has come."""
    return isinstance(row.phase, Pending) and row.wake_at is not None and row.wake_at <= now


def is_overdue(row: CallbackRow, now: datetime) -> bool:
    """Whether the agent is to be told that nothing came of it."""
    if not isinstance(row.phase, Pending) or row.timeout_s is None:
        return False
    return now - row.registered_at > timedelta(seconds=row.timeout_s)


def fired(
    row: CallbackRow, item_ids: tuple[str, ...], now: datetime
) -> tuple[tuple[Accept, ...], CallbackResolved | CallbackRearmed]:
    """A wakeup whose time has come: what reaches the mailbox, and what becomes of it.

    `item_ids` are fresh names, as many as it may bring. A recurring one comes again at the first
    of its own slots that is still to come; what those bring that were missed, its policy says.
    """
    at = row.wake_at or now
    if row.recurring_s is None:
        done = CallbackResolved(
            agent_id=row.agent_id, callback_id=row.id, how="fired", item_ids=item_ids[:1]
        )
        return (_delivery(row, item_ids[0], row.note, row.note),), done
    step = timedelta(seconds=row.recurring_s)
    slots = (now - at) // step + 1
    in_time = (now - at) % step <= timedelta(seconds=MISSED_AFTER_S)
    brought = {"once": 1, "skip": int(in_time), "all": min(slots, len(item_ids))}[row.misfire]
    missed = slots - brought
    again = CallbackRearmed(
        agent_id=row.agent_id, callback_id=row.id, wake_at=at + slots * step,
        item_ids=item_ids[:brought], missed=missed,
    )  # fmt: skip
    told = f"\n({missed} earlier times were missed.)" if missed else ""
    items = tuple(
        _delivery(row, item_id, row.note + (told if n == 0 else ""), row.note)
        for n, item_id in enumerate(item_ids[:brought])
    )
    return items, again


class Ended(Struct, frozen=True):
    """How a process ended; without `exit_code` nobody knows."""

    exit_code: int | None
    duration_s: float = 0.0
    stdout: str = ""
    stderr: str = ""
    timed_out: bool = False


def completed(row: CallbackRow, item_id: str, ended: Ended) -> tuple[Accept, CallbackResolved]:
    """A process that is over: its agent hears how, late or not."""
    late = isinstance(row.phase, TimedOut)
    known = ended.exit_code is not None
    done = CallbackResolved(
        agent_id=row.agent_id, callback_id=row.id, how="completed" if known else "vanished",
        item_ids=(item_id,), late=late, exit_code=ended.exit_code,
    )  # fmt: skip
    summary = f"Background process {_status(ended)}: {row.command[:COMMAND_CUT]}"
    lines = [f"Background process {_status(ended)}.", f"Command: {row.command}"]
    if late:
        lines.append("This is late: you were told that it had timed out.")
    if known:
        lines.append(f"Exit code: {ended.exit_code}")
        lines.append(f"Duration: {ended.duration_s:.1f}s")
    failed = ended.exit_code != 0
    for name, text in (("stderr", ended.stderr if failed else ""), ("stdout", ended.stdout)):
        if text:
            lines.append(f"--- {name} (tail) ---\n{text}")
    return _delivery(row, item_id, "\n".join(lines), summary, ended.exit_code), done


def _status(ended: Ended) -> str:
    if ended.exit_code is None:
        return "vanished; how it ended is unknown"
    if ended.timed_out:
        return "timed out and was ended"
    return "succeeded" if ended.exit_code == 0 else "failed"


def _delivery(
    row: CallbackRow, item_id: str, content: str, summary: str, exit_code: int | None = None
) -> Accept:
    in_session = row.delivery == "in_session"
    extra: dict[str, Any] = {"callbackId": row.id, "callbackType": row.type}
    if row.correlation_id is not None:
        extra["correlationId"] = row.correlation_id
    if in_session:
        extra["originSessionId"] = row.origin_session_id
        extra |= {} if exit_code is None else {"exitCode": exit_code}
    return Accept(
        item_id=item_id,
        source_type=CALLBACK_RESULT if in_session else SYSTEM_EVENT,
        payload=Payload(content, summary=summary[:LABEL_CUT], extra=extra),
        sender=Sender(None, None, "system"),
        session_id=row.origin_session_id if in_session else None,
    )


def answered(row: CallbackRow, item_id: str) -> CallbackResolved:
    """The reply has come, as the item itself."""
    return CallbackResolved(
        agent_id=row.agent_id, callback_id=row.id, how="completed", item_ids=(item_id,),
        late=isinstance(row.phase, TimedOut),
    )  # fmt: skip


def overdue(row: CallbackRow, now: datetime) -> Overdue | None:
    """What a heartbeat says of it, if it is overdue."""
    if not is_overdue(row, now):
        return None
    elapsed_s = (now - row.registered_at).total_seconds()
    return Overdue(row.id, label(row), elapsed_s, row.origin_session_id)


def label(row: CallbackRow) -> str:
    """What people and agents call a callback."""
    return (row.command or row.note or row.type)[:LABEL_CUT]


def told(**facts: Any) -> str:
    """What a model reads about a callback of its own."""
    return json.dumps(facts, ensure_ascii=False)
