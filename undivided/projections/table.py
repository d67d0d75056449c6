"""The table of projections: which event touches which rows, and by which reducer.

`version` is raised when a reducer changes meaning: rebuilds and snapshots carry it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

from msgspec import Struct

from undivided.domain.events.agents import MemoryNoted
from undivided.domain.events.catalogue import CATALOGUE
from undivided.domain.events.items import NoticePosted
from undivided.domain.recorded import Recorded
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
from undivided.projections import (
    agents,
    callbacks,
    flights,
    heartbeats,
    items,
    people,
    records,
    sessions,
)

Row = Struct
Rows = dict[tuple[str, str], Any]
"""Rows in hand, by (table, row id); a value of None says that there is no such row."""


class Projection(Struct, frozen=True):
    """One table of rows and the pure functions that fold it.

    `events` are the types that can touch a row; `births` are those that begin one: before them
    there is none to read.
    """

    table: str
    row: type[Any]
    events: frozenset[type[Any]]
    keys: Callable[[Recorded], tuple[str, ...]]
    reduce: Callable[[str, Any, Recorded], Any]
    births: frozenset[str]
    version: int = 1


def _by_row(reduce: Callable[[Any, Recorded], Any]) -> Callable[[str, Any, Recorded], Any]:
    return lambda _key, row, recorded: reduce(row, recorded)


def _types(union: Any) -> frozenset[type[Any]]:
    return frozenset(get_args(union) or (union,))


PROJECTIONS: tuple[Projection, ...] = (
    Projection("agents", AgentRow, _types(agents.TOUCHED), agents.keys,
               _by_row(agents.reduce), frozenset({"AgentCreated"})),
    Projection("flights", FlightRow, _types(flights.TOUCHED), flights.keys,
               _by_row(flights.reduce), frozenset()),
    Projection("items", ItemRow, _types(items.TOUCHED), items.keys,
               items.reduce, frozenset({"StimulusAccepted"})),
    Projection("sessions", SessionRow, _types(sessions.SESSION), sessions.session_keys,
               _by_row(sessions.reduce_session), frozenset({"SessionOpened"})),
    Projection("turns", TurnRow, _types(sessions.TURN), sessions.turn_keys,
               _by_row(sessions.reduce_turn), frozenset({"TurnStarted"})),
    Projection("activities", ActivityRow, _types(records.ACTIVE), records.activity_keys,
               _by_row(records.reduce_activity), frozenset({"ItemPicked", "TriageBegan"})),
    Projection("decisions", DecisionRow, _types(records.DECIDED), records.decision_keys,
               _by_row(records.reduce_decision),
               frozenset(kind.__name__ for kind in _types(records.DECIDED))),
    Projection("memories", MemoryRow, _types(MemoryNoted), records.memory_keys,
               records.reduce_memory, frozenset({"MemoryNoted"})),
    Projection("notices", NoticeRow, _types(NoticePosted), records.notice_keys,
               _by_row(records.reduce_notice), frozenset({"NoticePosted"})),
    Projection("notifications", NotificationRow, _types(people.TOLD), people.notification_keys,
               _by_row(people.reduce_notification),
               frozenset({"NotificationPosted", "NoticePosted"})),
    Projection("approvals", ApprovalRow, _types(people.ASKED), people.approval_keys,
               _by_row(people.reduce_approval), frozenset({"ApprovalRequested"})),
    Projection("callbacks", CallbackRow, _types(callbacks.EXPECTED), callbacks.callback_keys,
               _by_row(callbacks.reduce_callback), frozenset({"CallbackRegistered"})),
    Projection("heartbeats", HeartbeatRow, _types(heartbeats.TOUCHED), heartbeats.keys,
               _by_row(heartbeats.reduce), frozenset({"AgentCreated"})),
)  # fmt: skip

BY_TABLE = {projection.table: projection for projection in PROJECTIONS}


def _by_event() -> dict[type[Any], tuple[Projection, ...]]:
    """For each type of event the projections whose rows it can touch, in their order."""
    return {kind: tuple(p for p in PROJECTIONS if kind in p.events) for kind in CATALOGUE}


_BY_EVENT = _by_event()


def touched(recorded: Recorded) -> list[tuple[Projection, str]]:
    """Every row that an event changes."""
    concerned = _BY_EVENT.get(type(recorded.event), ())
    return [(p, key) for p in concerned for key in p.keys(recorded)]


def fold(rows: Rows, history: list[Recorded]) -> set[tuple[str, str]]:
    """Fold `history` into `rows`, in place; answers which rows changed."""
    changed: set[tuple[str, str]] = set()
    for recorded in history:
        for projection in _BY_EVENT.get(type(recorded.event), ()):
            reduce = projection.reduce
            for key in projection.keys(recorded):
                place = (projection.table, key)
                rows[place] = reduce(key, rows.get(place), recorded)
                changed.add(place)
    return changed
