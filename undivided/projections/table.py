"""The table of projections: which event touches which rows, and by which reducer.

`version` is raised when a reducer changes meaning: rebuilds and snapshots carry it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from undivided.domain.recorded import Recorded
from undivided.domain.state.agent import AgentRow, FlightRow, MemoryRow
from undivided.domain.state.item import ItemRow
from undivided.domain.state.session import (
    ActivityRow,
    DecisionRow,
    NoticeRow,
    SessionRow,
    TurnRow,
)
from undivided.projections import agents, flights, items, records, sessions

Row = Struct
Rows = dict[tuple[str, str], Any]
"""Rows in hand, by (table, row id); a value of None says that there is no such row."""


class Projection(Struct, frozen=True):
    """One table of rows and the pure functions that fold it.

    `births` are the event types that begin a row: before them there is none to read.
    """

    table: str
    row: type[Any]
    keys: Callable[[Recorded], tuple[str, ...]]
    reduce: Callable[[str, Any, Recorded], Any]
    births: frozenset[str]
    version: int = 1


def _by_row(reduce: Callable[[Any, Recorded], Any]) -> Callable[[str, Any, Recorded], Any]:
    return lambda _key, row, recorded: reduce(row, recorded)


PROJECTIONS: tuple[Projection, ...] = (
    Projection("agents", AgentRow, agents.keys, _by_row(agents.reduce),
               frozenset({"AgentCreated"})),
    Projection("flights", FlightRow, flights.keys, _by_row(flights.reduce), frozenset()),
    Projection("items", ItemRow, items.keys, _by_row(items.reduce),
               frozenset({"StimulusAccepted"})),
    Projection("sessions", SessionRow, sessions.session_keys,
               _by_row(sessions.reduce_session), frozenset({"SessionOpened"})),
    Projection("turns", TurnRow, sessions.turn_keys, _by_row(sessions.reduce_turn),
               frozenset({"TurnStarted"})),
    Projection("activities", ActivityRow, records.activity_keys,
               _by_row(records.reduce_activity), frozenset({"ItemPicked"})),
    Projection("decisions", DecisionRow, records.decision_keys,
               _by_row(records.reduce_decision),
               frozenset({"ItemPicked", "ItemCompleted", "ItemRequeued", "ItemDeadLettered",
                          "ItemCancelled"})),
    Projection("memories", MemoryRow, records.memory_keys, records.reduce_memory,
               frozenset({"MemoryNoted"})),
    Projection("notices", NoticeRow, records.notice_keys, _by_row(records.reduce_notice),
               frozenset({"NoticePosted"})),
)  # fmt: skip

BY_TABLE = {projection.table: projection for projection in PROJECTIONS}


def touched(recorded: Recorded) -> list[tuple[Projection, str]]:
    """Every row that an event changes."""
    return [(p, key) for p in PROJECTIONS for key in p.keys(recorded)]


def fold(rows: Rows, history: list[Recorded]) -> set[tuple[str, str]]:
    """Fold `history` into `rows`, in place; answers which rows changed."""
    changed: set[tuple[str, str]] = set()
    for recorded in history:
        for projection, key in touched(recorded):
            place = (projection.table, key)
            rows[place] = projection.reduce(key, rows.get(place), recorded)
            changed.add(place)
    return changed
