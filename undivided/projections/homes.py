"""The one stream from which each row is folded."""

from __future__ import annotations

from typing import assert_never

from undivided.domain.recorded import agent_stream, session_stream, user_stream
from undivided.domain.state.agent import AgentRow, FlightRow, MemoryRow
from undivided.domain.state.callback import CallbackRow
from undivided.domain.state.heartbeat import HeartbeatRow
from undivided.domain.state.item import ItemRow
from undivided.domain.state.people import ApprovalRow, NotificationRow
from undivided.domain.state.session import (
    ActivityRow,
    DecisionRow,
    NoticeRow,
    SessionRow,
    TurnRow,
)

AnyRow = (
    AgentRow | FlightRow | MemoryRow | ItemRow | SessionRow | TurnRow | ActivityRow | DecisionRow
    | NoticeRow | NotificationRow | ApprovalRow | CallbackRow | HeartbeatRow
)  # fmt: skip


def home_of(row: AnyRow) -> str:
    """The stream whose events alone make this row."""
    match row:
        case AgentRow() | FlightRow() | HeartbeatRow():
            return agent_stream(row.id)
        case ItemRow() | ActivityRow() | DecisionRow() | MemoryRow() | CallbackRow():
            return agent_stream(row.agent_id)
        case SessionRow():
            return session_stream(row.id)
        case TurnRow():
            return session_stream(row.session_id)
        case NoticeRow() | NotificationRow() | ApprovalRow():
            return user_stream(row.user_id)
        case _:
            assert_never(row)
