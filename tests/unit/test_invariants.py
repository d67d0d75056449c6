"""Every invariant is green on good histories and red on the history that breaks it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.support.events import placed, recorded
from tests.support.histories import good_histories, rewritten
from undivided.domain.coordinates import Coordinate
from undivided.domain.events import flights as f
from undivided.domain.events import items as i
from undivided.domain.events import sessions as s
from undivided.domain.invariants import Finding, findings_of
from undivided.domain.placed import Placed
from undivided.domain.recorded import Recorded

GOOD = good_histories()


def rules(found: list[Finding]) -> set[tuple[int, str]]:
    return {(one.invariant, one.rule) for one in found}


def chosen(data: st.DataObject, history: list[Placed], wanted: Callable[[Any], bool]) -> int:
    """The index of some event that is wanted; the history is given up if it has none."""
    places = [n for n, one in enumerate(history) if wanted(one.recorded.event)]
    assume(places)
    return data.draw(st.sampled_from(places))


def without(history: list[Placed], index: int) -> list[Placed]:
    return rewritten(history[:index] + history[index + 1 :])


def again(history: list[Placed], index: int) -> list[Placed]:
    """The event once more, in a transaction of its own at the end of its own."""
    one = history[index]
    own = one.coordinate.txid
    end = next((n for n, p in enumerate(history) if p.coordinate.txid > own), len(history))
    copy = Placed(Coordinate(own + 1, 0), one.recorded)
    return rewritten([*history[:end], copy, *history[end:]])


def changed(history: list[Placed], index: int, **fields: Any) -> list[Placed]:
    one = history[index]
    event = replace(one.recorded.event, **fields)
    new = Placed(one.coordinate, replace(one.recorded, event=event))
    return [*history[:index], new, *history[index + 1 :]]


class TestAnyHistory:
    """The checks are total, and satisfied by what is right."""

    @given(GOOD)
    def test_a_good_history_has_no_finding(self, history: list[Placed]) -> None:
        assert findings_of(history) == []

    @given(GOOD, st.data())
    def test_a_good_history_is_good_wherever_it_ends(
        self, history: list[Placed], data: st.DataObject
    ) -> None:
        """At every coordinate, whole transactions hold what must hold."""
        ends = sorted({one.coordinate.txid for one in history})
        end = data.draw(st.sampled_from(ends))
        assert findings_of([one for one in history if one.coordinate.txid <= end]) == []

    @given(st.lists(recorded(), max_size=20))
    def test_no_history_makes_a_check_raise(self, history: list[Recorded]) -> None:
        findings_of(placed(history))

    @given(GOOD, st.data())
    def test_a_finding_says_where(self, history: list[Placed], data: st.DataObject) -> None:
        """Each names a coordinate of the history and a stream that is in it."""
        index = data.draw(st.integers(0, len(history) - 1))
        known = {str(one.coordinate) for one in history}
        for finding in findings_of(history[:index] + history[index + 1 :]):
            assert finding.where in known
            assert finding.stream in {one.recorded.stream for one in history}
            assert finding.text
            assert finding.subject


class TestTheOrderOfTheLog:
    """0: streams have no gap, no repetition, and one order."""

    @given(GOOD, st.data())
    def test_a_lost_event_leaves_a_gap(self, history: list[Placed], data: st.DataObject) -> None:
        last = {one.recorded.stream: n for n, one in enumerate(history)}
        inner = [n for n, one in enumerate(history) if last[one.recorded.stream] != n]
        assume(inner)
        index = data.draw(st.sampled_from(inner))
        found = findings_of(history[:index] + history[index + 1 :])
        assert (0, "version_missing") in rules(found)

    @given(GOOD, st.data())
    def test_an_event_that_is_there_twice_is_found(
        self, history: list[Placed], data: st.DataObject
    ) -> None:
        index = data.draw(st.integers(0, len(history) - 1))
        found = findings_of([*history[: index + 1], *history[index:]])
        assert (0, "version_out_of_order") in rules(found)

    @given(GOOD, st.data())
    def test_two_events_of_a_stream_in_the_wrong_order_are_found(
        self, history: list[Placed], data: st.DataObject
    ) -> None:
        pairs = [
            (n, m)
            for n, one in enumerate(history)
            for m, other in enumerate(history[n + 1 :], start=n + 1)
            if one.recorded.stream == other.recorded.stream
        ]
        assume(pairs)
        n, m = data.draw(st.sampled_from(pairs))
        swapped = list(history)
        swapped[n], swapped[m] = history[m], history[n]
        assert {0} <= {one.invariant for one in findings_of(swapped)}


class TestSingleFlight:
    """1: one live flight an agent, and nothing carries a stale epoch."""

    @given(GOOD, st.data())
    def test_a_stale_epoch_is_found(self, history: list[Placed], data: st.DataObject) -> None:
        index = chosen(
            data, history,
            lambda e: hasattr(e, "epoch") and not isinstance(
                e, f.FlightAcquired | f.FlightReleased | f.FlightFenced),
        )  # fmt: skip
        event: Any = history[index].recorded.event
        found = findings_of(changed(history, index, epoch=event.epoch - 1))
        assert (1, "stale_epoch") in rules(found)

    @given(GOOD, st.data())
    def test_an_epoch_from_the_future_is_found(
        self, history: list[Placed], data: st.DataObject
    ) -> None:
        index = chosen(data, history, lambda e: isinstance(e, s.ModelResponded))
        event: Any = history[index].recorded.event
        found = findings_of(changed(history, index, epoch=event.epoch + 1))
        assert (1, "stale_epoch") in rules(found)

    @given(GOOD, st.data())
    def test_a_second_flight_beside_a_live_one_is_found(
        self, history: list[Placed], data: st.DataObject
    ) -> None:
        index = chosen(data, history, lambda e: isinstance(e, f.FlightReleased))
        assume(any(
            isinstance(one.recorded.event, f.FlightAcquired)
            and one.recorded.stream == history[index].recorded.stream
            for one in history[index:]
        ))  # fmt: skip
        assert (1, "two_flights") in rules(findings_of(without(history, index)))

    @given(GOOD, st.data())
    def test_an_epoch_that_was_there_before_is_found(
        self, history: list[Placed], data: st.DataObject
    ) -> None:
        index = chosen(data, history, lambda e: isinstance(e, f.FlightAcquired))
        assert (1, "epoch_not_next") in rules(findings_of(again(history, index)))

    @given(GOOD, st.data())
    def test_work_without_a_flight_is_found(
        self, history: list[Placed], data: st.DataObject
    ) -> None:
        index = chosen(data, history, lambda e: isinstance(e, f.FlightAcquired))
        assert {1} <= {one.invariant for one in findings_of(without(history, index))}

    @given(GOOD, st.data())
    def test_letting_go_of_what_another_holds_is_found(
        self, history: list[Placed], data: st.DataObject
    ) -> None:
        index = chosen(data, history, lambda e: isinstance(e, f.FlightReleased))
        assert (1, "release_of_other") in rules(findings_of(again(history, index)))

    @given(GOOD, st.data())
    def test_a_step_of_no_open_turn_is_found(
        self, history: list[Placed], data: st.DataObject
    ) -> None:
        index = chosen(data, history, lambda e: isinstance(e, s.TurnStarted))
        turn = getattr(history[index].recorded.event, "turn_id", "")
        assume(any(
            isinstance(one.recorded.event, s.ModelResponded | s.TurnEnded)
            and one.recorded.event.turn_id == turn
            for one in history
        ))  # fmt: skip
        assert (1, "step_outside_turn") in rules(findings_of(without(history, index)))


class TestNothingLost:
    """2: every accepted item is in exactly one place."""

    @given(GOOD, st.data())
    def test_an_item_that_was_never_accepted_is_found(
        self, history: list[Placed], data: st.DataObject
    ) -> None:
        picked = {
            one.recorded.event.item_id
            for one in history
            if isinstance(one.recorded.event, i.ItemPicked)
        }
        index = chosen(
            data, history, lambda e: isinstance(e, i.StimulusAccepted) and e.item_id in picked
        )
        assert (2, "not_where_it_was") in rules(findings_of(without(history, index)))

    @given(GOOD, st.data())
    def test_an_item_left_in_a_turn_that_is_over_is_found(
        self, history: list[Placed], data: st.DataObject
    ) -> None:
        index = chosen(
            data, history,
            lambda e: isinstance(
                e, i.ItemCompleted | i.ItemRequeued | i.ItemCancelled | i.ItemDeadLettered),
        )  # fmt: skip
        assert {one.rule for one in findings_of(without(history, index))} & {
            "left_in_ended_turn",
            "not_where_it_was",
        }

    @given(GOOD, st.data())
    def test_an_item_accepted_twice_is_found(
        self, history: list[Placed], data: st.DataObject
    ) -> None:
        index = chosen(data, history, lambda e: isinstance(e, i.StimulusAccepted))
        assert (2, "place_taken") in rules(findings_of(again(history, index)))

    @given(GOOD, st.data())
    def test_an_item_picked_twice_is_found(
        self, history: list[Placed], data: st.DataObject
    ) -> None:
        index = chosen(data, history, lambda e: isinstance(e, i.ItemPicked))
        assert (2, "not_where_it_was") in rules(findings_of(again(history, index)))

    @given(GOOD, st.data())
    def test_an_item_that_is_over_does_not_move(
        self, history: list[Placed], data: st.DataObject
    ) -> None:
        index = chosen(data, history, lambda e: isinstance(e, i.ItemCompleted | i.ItemDeadLettered))
        assert (2, "not_where_it_was") in rules(findings_of(again(history, index)))

    @given(GOOD, st.data())
    def test_an_item_that_waits_while_its_turn_is_open_is_found(
        self, history: list[Placed], data: st.DataObject
    ) -> None:
        requeued = {
            one.recorded.event.turn_id
            for one in history
            if isinstance(one.recorded.event, i.ItemRequeued)
        }
        index = chosen(
            data, history, lambda e: isinstance(e, s.TurnEnded) and e.turn_id in requeued
        )
        assert (2, "fate_without_end") in rules(findings_of(without(history, index)))

    @given(GOOD, st.data())
    def test_a_dead_letter_nobody_is_told_of_is_found(
        self, history: list[Placed], data: st.DataObject
    ) -> None:
        index = chosen(data, history, lambda e: isinstance(e, i.NoticePosted))
        assert (2, "given_up_silently") in rules(findings_of(without(history, index)))


class TestCompletedWithItsTurn:
    """3: `item.completed` and `turn.ended` are one transaction."""

    @given(GOOD, st.data())
    def test_a_completion_without_the_end_is_found(
        self, history: list[Placed], data: st.DataObject
    ) -> None:
        completed = {
            one.recorded.event.turn_id
            for one in history
            if isinstance(one.recorded.event, i.ItemCompleted)
        }
        index = chosen(
            data, history, lambda e: isinstance(e, s.TurnEnded) and e.turn_id in completed
        )
        for broken in (without(history, index), changed(history, index, item_ids=())):
            assert (3, "completed_without_turn") in rules(findings_of(broken))

    @given(GOOD, st.data())
    def test_a_completion_in_the_next_transaction_is_found(
        self, history: list[Placed], data: st.DataObject
    ) -> None:
        index = chosen(data, history, lambda e: isinstance(e, i.ItemCompleted))
        moved = again(history, index)
        del moved[index]
        assert (3, "completed_without_turn") in rules(findings_of(rewritten(moved)))


class TestOneResultACall:
    """5: one result a call, and a `once` tool starts at most once."""

    @given(GOOD, st.data())
    def test_a_second_result_is_found(self, history: list[Placed], data: st.DataObject) -> None:
        index = chosen(data, history, lambda e: isinstance(e, s.ToolCallFinished))
        assert {one.rule for one in findings_of(again(history, index))} & {
            "second_result",
            "step_outside_turn",
        }

    @given(GOOD, st.data())
    def test_a_call_without_a_result_is_found_once_its_turn_is_over(
        self, history: list[Placed], data: st.DataObject
    ) -> None:
        ended = {
            one.recorded.event.turn_id
            for one in history
            if isinstance(one.recorded.event, s.TurnEnded)
        }
        index = chosen(
            data, history, lambda e: isinstance(e, s.ToolCallFinished) and e.turn_id in ended
        )
        assert (5, "result_missing") in rules(findings_of(without(history, index)))

    @given(GOOD, st.data())
    def test_a_once_tool_started_again_is_found(
        self, history: list[Placed], data: st.DataObject
    ) -> None:
        index = chosen(
            data, history, lambda e: isinstance(e, s.ToolCallStarted) and e.effect == "once"
        )
        assert (5, "once_started_again") in rules(findings_of(again(history, index)))

    @given(GOOD, st.data())
    def test_a_call_nobody_asked_for_is_found(
        self, history: list[Placed], data: st.DataObject
    ) -> None:
        called = {
            one.recorded.event.turn_id
            for one in history
            if isinstance(one.recorded.event, s.ToolCallStarted | s.ToolCallFinished)
        }
        index = chosen(
            data, history,
            lambda e: isinstance(e, s.ModelResponded) and len(e.calls) > 0 and e.turn_id in called,
        )  # fmt: skip
        event: Any = history[index].recorded.event
        calls = {call.id for call in event.calls}
        assume(any(
            isinstance(one.recorded.event, s.ToolCallStarted | s.ToolCallFinished)
            and one.recorded.event.call_id in calls
            for one in history
        ))  # fmt: skip
        assert (5, "call_never_asked") in rules(findings_of(without(history, index)))

    @given(GOOD, st.data())
    def test_a_call_started_after_its_result_is_found(
        self, history: list[Placed], data: st.DataObject
    ) -> None:
        index = chosen(data, history, lambda e: isinstance(e, s.ToolCallStarted))
        started: Any = history[index].recorded.event
        end = [
            n
            for n, one in enumerate(history)
            if isinstance(one.recorded.event, s.ToolCallFinished)
            and one.recorded.event.call_id == started.call_id
        ]
        assume(end)
        own = history[end[0]].coordinate.txid
        late = Placed(Coordinate(own + 1, 0), history[index].recorded)
        broken = rewritten([*history[: end[0] + 1], late, *history[end[0] + 1 :]])
        assert (5, "started_after_result") in rules(findings_of(broken))
