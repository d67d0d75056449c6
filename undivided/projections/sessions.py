"""The session row and the turn row."""

from __future__ import annotations

from datetime import timedelta

from msgspec.structs import replace

from undivided.domain.dialogue import Usage
from undivided.domain.events import sessions as s
from undivided.domain.recorded import Recorded, session_stream
from undivided.domain.state.session import (
    SessionRow,
    TurnOver,
    TurnPhase,
    TurnRow,
    TurnRunning,
    TurnSetAside,
    TurnWaiting,
)

SESSION = (
    s.SessionOpened | s.SessionArchived | s.SessionDeleted | s.TurnStarted | s.TurnPreempted
    | s.TurnResumed | s.TurnEnded
)  # fmt: skip
TURN = s.TurnStarted | s.TurnSuspended | s.TurnPreempted | s.TurnResumed | s.TurnEnded


def session_keys(recorded: Recorded) -> tuple[str, ...]:
    """The session, for the events that change its row; steps change nothing in it."""
    event = recorded.event
    if isinstance(event, s.TurnPreempted | s.TurnResumed):
        return (recorded.stream.removeprefix(session_stream("")),)
    return (event.session_id,) if isinstance(event, SESSION) else ()


def reduce_session(row: SessionRow | None, recorded: Recorded) -> SessionRow | None:
    """The session's row after `recorded`."""
    event, at = recorded.event, recorded.at
    if isinstance(event, s.SessionOpened):
        return SessionRow(
            id=event.session_id, agent_id=event.agent_id, status="active",
            binding=event.binding, active_turn=None, turns=0, responses=0, usage=Usage(),
            opened_at=at, changed_at=at,
        )  # fmt: skip
    if row is None:
        return None
    match event:
        case s.TurnStarted():
            return replace(row, active_turn=event.turn_id, changed_at=at)
        case s.TurnPreempted():
            away = (*row.set_aside, event.turn_id)
            return replace(row, active_turn=None, set_aside=away, changed_at=at)
        case s.TurnResumed() if event.turn_id in row.set_aside:
            away = tuple(turn for turn in row.set_aside if turn != event.turn_id)
            return replace(row, active_turn=event.turn_id, set_aside=away, changed_at=at)
        case s.TurnEnded() if event.turn_id in row.set_aside:
            away = tuple(turn for turn in row.set_aside if turn != event.turn_id)
            return replace(
                row, set_aside=away, responses=row.responses + event.responses,
                usage=row.usage.plus(event.usage), changed_at=at,
            )  # fmt: skip
        case s.TurnEnded():
            return replace(
                row, active_turn=None, turns=row.turns + 1,
                responses=row.responses + event.responses, usage=row.usage.plus(event.usage),
                changed_at=at,
            )  # fmt: skip
        case s.SessionArchived():
            return replace(row, status="archived", changed_at=at)
        case s.SessionDeleted():
            return replace(row, status="deleted", changed_at=at)
        case _:
            return row


def turn_keys(recorded: Recorded) -> tuple[str, ...]:
    """The turn, for the events that change its row; steps change nothing in it."""
    event = recorded.event
    return (event.turn_id,) if isinstance(event, TURN) else ()


def reduce_turn(row: TurnRow | None, recorded: Recorded) -> TurnRow | None:
    """The turn's row after `recorded`."""
    event, at = recorded.event, recorded.at
    if isinstance(event, s.TurnStarted):
        return _started(event, recorded)
    if row is None:
        return None
    match event:
        case s.TurnSuspended():
            return replace(row, phase=_waiting(row, event, recorded))
        case s.TurnPreempted():
            return replace(row, phase=_set_aside(row, event, recorded))
        case s.TurnResumed():
            orphaned = row.orphaned + (event.cause == "orphaned")
            phase = _running(row, recorded, event.left_s)
            return replace(row, phase=phase, flights=row.flights + 1, orphaned=orphaned)
        case s.TurnEnded():
            return replace(
                row, phase=TurnOver(event.outcome, at), usage=event.usage,
                last_version=recorded.version,
            )  # fmt: skip
        case _:
            return row


def _started(event: s.TurnStarted, recorded: Recorded) -> TurnRow:
    deadline = recorded.at + timedelta(seconds=event.backstop_s)
    return TurnRow(
        id=event.turn_id, agent_id=event.agent_id, session_id=event.session_id,
        item_ids=event.item_ids, scenario=event.scenario, origin=event.origin,
        index=event.index, responses_before=event.responses_before,
        phase=TurnRunning(deadline), flights=1, orphaned=0, usage=Usage(),
        first_version=recorded.version, last_version=None, started_at=recorded.at,
    )  # fmt: skip


def _waiting(row: TurnRow, event: s.TurnSuspended, recorded: Recorded) -> TurnWaiting:
    left = 0.0
    if isinstance(row.phase, TurnRunning):
        left = max(0.0, (row.phase.deadline - recorded.at).total_seconds())
    until = recorded.at + timedelta(seconds=event.wait_s)
    return TurnWaiting(event.call_id, event.wait, recorded.at, until, left)


def _set_aside(row: TurnRow, event: s.TurnPreempted, recorded: Recorded) -> TurnPhase:
    match row.phase:
        case TurnRunning(deadline=deadline):
            left = max(0.0, (deadline - recorded.at).total_seconds())
            return TurnSetAside(event.by, recorded.at, left)
        case TurnWaiting() as waiting:
            return TurnSetAside(event.by, recorded.at, waiting.left_s, waiting)
        case TurnSetAside() | TurnOver():
            return row.phase


def _running(row: TurnRow, recorded: Recorded, left_s: float | None) -> TurnRunning | TurnOver:
    match row.phase:
        case TurnWaiting(left_s=left) | TurnSetAside(left_s=left):
            return TurnRunning(recorded.at + timedelta(seconds=left if left_s is None else left_s))
        case TurnRunning() | TurnOver():
            return row.phase
