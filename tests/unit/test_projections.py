"""Every projection is a total, pure fold: over any history, however it is cut."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.support.events import events, recorded
from undivided.domain.events.catalogue import CATALOGUE, Event
from undivided.domain.recorded import Recorded
from undivided.projections.table import BY_TABLE, PROJECTIONS, Rows, fold, touched
from undivided.store.codec import encode, row_decoder

HISTORIES = st.lists(recorded(), max_size=15)


class TestEveryReducer:
    """Folding history is not up for debate."""

    @given(HISTORIES)
    def test_takes_any_history_in_any_order(self, history: list[Recorded]) -> None:
        """No history makes a reducer raise, and each row is of its table's type or absent."""
        rows: Rows = {}
        fold(rows, history)
        for (table, key), row in rows.items():
            assert row is None or isinstance(row, BY_TABLE[table].row)
            assert row is None or row.id == key

    @given(HISTORIES, st.data())
    def test_does_not_care_where_history_is_cut(
        self, history: list[Recorded], data: st.DataObject
    ) -> None:
        """fold(a + b) == fold(b, fold(a))."""
        cut = data.draw(st.integers(0, len(history)))
        whole: Rows = {}
        parts: Rows = {}
        changed = fold(whole, history)
        changed_in_parts = fold(parts, history[:cut]) | fold(parts, history[cut:])
        assert whole == parts
        assert changed == changed_in_parts

    @given(HISTORIES)
    def test_answers_the_same_every_time(self, history: list[Recorded]) -> None:
        """A reducer reads the row and the event, and nothing else."""
        once: Rows = {}
        again: Rows = {}
        fold(once, history)
        fold(again, history)
        assert once == again

    @given(HISTORIES)
    def test_leaves_its_arguments_alone(self, history: list[Recorded]) -> None:
        """Rows folded from a prefix are the same after the rest was folded from them."""
        rows: Rows = {}
        kept: dict[tuple[str, str], tuple[Any, bytes]] = {}
        for one in history:
            fold(rows, [one])
            for place, row in rows.items():
                kept.setdefault(place, (row, encode(row)))
        for row, text in kept.values():
            assert encode(row) == text

    @given(HISTORIES)
    def test_makes_rows_that_are_stored_and_read_back_as_they_are(
        self, history: list[Recorded]
    ) -> None:
        """A row in hand and the same row read from its table are one and the same."""
        rows: Rows = {}
        fold(rows, history)
        for (table, _), row in rows.items():
            if row is not None:
                assert row_decoder(BY_TABLE[table].row)(encode(row).decode()) == row


class TestTheTableOfProjections:
    """Which event touches which row is told by the table alone."""

    @given(recorded())
    def test_a_row_that_is_not_named_does_not_change(self, one: Recorded) -> None:
        """What `keys` leaves out, `reduce` leaves as it is."""
        named = {projection.table for projection, _ in touched(one)}
        for projection in PROJECTIONS:
            if projection.table not in named:
                assert projection.reduce("a", None, one) is None

    @given(events(*CATALOGUE), recorded(), recorded())
    def test_a_birth_needs_no_row_before_it(
        self, event: Event, envelope: Recorded, other: Recorded
    ) -> None:
        """A row begun by a birth event is the same whatever stood there before."""
        birth = replace(envelope, event=event)
        for projection, key in touched(birth):
            if type(event).__name__ in projection.births:
                before = projection.reduce(key, None, other)
                fresh = projection.reduce(key, None, birth)
                assert projection.reduce(key, before, birth) == fresh

    def test_births_are_names_of_events(self) -> None:
        """A birth that is misspelt would be read from the table for ever."""
        names = {kind.__name__ for kind in CATALOGUE}
        for projection in PROJECTIONS:
            assert projection.births <= names, projection.table

    @given(recorded())
    def test_time_comes_from_the_event(self, one: Recorded) -> None:
        """The same event later makes the same row later, with no other clock in it."""
        later = replace(one, at=one.at + timedelta(days=1))
        for projection, key in touched(one):
            first = projection.reduce(key, None, one)
            second = projection.reduce(key, None, later)
            assert (first is None) == (second is None)
