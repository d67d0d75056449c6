"""Callbacks: what is registered, when it comes, and what it brings."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.support.events import BEGAN
from undivided.domain.callbacks import (
    ALL_AT_MOST,
    Asking,
    CancelWakeup,
    Ended,
    RunInBackground,
    ScheduleWakeup,
    background,
    cancelled,
    completed,
    fired,
    is_due,
    overdue,
    reply,
    wakeup,
)
from undivided.domain.errors import Invalid
from undivided.domain.events import callbacks as c
from undivided.domain.events.catalogue import Event
from undivided.domain.events.heartbeats import HeartbeatEnqueued
from undivided.domain.events.items import Sender
from undivided.domain.messaging import conversation_of, conversations, direct_channel, message
from undivided.domain.recorded import Meta, Recorded
from undivided.domain.state.callback import CallbackRow, Pending, Resolved, TimedOut
from undivided.projections.callbacks import callback_keys, reduce_callback

ASKING = Asking("ada", "trn_1", "ses_ada", "cbk_1")


def folded(*events: Event) -> CallbackRow:
    """The row after some events, all at the same moment."""
    row = None
    for n, event in enumerate(events, start=1):
        recorded = Recorded("e", "agent:ada", n, event, Meta(), BEGAN)
        assert callback_keys(recorded) == ("cbk_1",)
        row = reduce_callback(row, recorded)
    assert row is not None
    return row


def woken(**given_: Any) -> CallbackRow:
    """A wakeup as the tool registers it."""
    act = ScheduleWakeup(
        in_s=given_.get("in_s"), at=given_.get("at"), recurring_s=given_.get("recurring_s"),
        note=given_.get("note", ""), delivery=given_.get("delivery", "mailbox"),
    )  # fmt: skip
    return folded(wakeup(act, ASKING, BEGAN))


class TestRegistering:
    """What the registry keeps."""

    def test_179_each_is_resolved_by_itself(self) -> None:
        """Of two that are registered one stays."""
        one, other = woken(in_s=1), replace(woken(in_s=1), id="cbk_2")
        _, done = fired(one, ("mbx_1",), BEGAN + timedelta(seconds=1))
        assert done.callback_id == one.id
        assert isinstance(other.phase, Pending)

    def test_183_184_what_is_kept_comes_back(self) -> None:
        """Type, delivery, moment and interval; a command is delivered in its session."""
        kept = woken(at="2026-03-01T10:00:00+01:00", recurring_s=456)
        assert (kept.type, kept.delivery, kept.recurring_s) == ("wakeup", "mailbox", 456)
        assert kept.wake_at == datetime(2026, 3, 1, 9, tzinfo=UTC)
        command = folded(background(RunInBackground("true", 5), ASKING, "h1"))
        assert (command.delivery, command.host) == ("in_session", "h1")

    @pytest.mark.parametrize(("limit_s", "patience_s"), [(3600, 3660), (60, 600), (300, 600)])
    def test_187_a_command_is_waited_for_beyond_its_limit(
        self, limit_s: float, patience_s: float
    ) -> None:
        """Ten minutes at least."""
        event = background(RunInBackground("true", limit_s), ASKING, "h1")
        assert (event.timeout_s, event.limit_s) == (patience_s, limit_s)

    def test_in_seconds_wins_over_a_time(self) -> None:
        """And a time without a zone is UTC."""
        assert woken(in_s=60, at="2020-01-01").wake_at == BEGAN + timedelta(seconds=60)
        assert woken(at="2020-01-01T00:00").wake_at == datetime(2020, 1, 1, tzinfo=UTC)

    @pytest.mark.parametrize(
        "wrong",
        [{}, {"at": "soon"}, {"in_s": 0}, {"in_s": 1e9}, {"in_s": 1, "recurring_s": 0.5}],
    )
    def test_what_says_no_moment_is_refused(self, wrong: dict[str, Any]) -> None:
        """In words for the model."""
        with pytest.raises(Invalid):
            woken(**wrong)


class TestWakeups:
    """Moments."""

    def test_181_only_a_moment_that_has_come_is_due(self) -> None:
        """A command has none."""
        assert is_due(woken(in_s=1), BEGAN + timedelta(seconds=1))
        assert not is_due(woken(in_s=60), BEGAN)
        assert not is_due(folded(background(RunInBackground("x", 5), ASKING, "h")), BEGAN)

    @given(
        st.floats(1, 1e6, allow_nan=False), st.floats(0, 1e8, allow_nan=False),
    )  # fmt: skip
    def test_191_a_recurring_one_keeps_to_its_slots(self, every_s: float, late_s: float) -> None:
        """The next is the first slot after now; each that passed is counted once."""
        row = woken(in_s=10, recurring_s=every_s)
        assert row.wake_at is not None
        now = row.wake_at + timedelta(seconds=late_s)
        _, again = fired(row, ("mbx_1",), now)
        assert isinstance(again, c.CallbackRearmed)
        step = timedelta(seconds=every_s)
        assert now < again.wake_at <= now + step
        assert again.wake_at == row.wake_at + (again.missed + 1) * step
        assert folded_on(row, again).wake_at == again.wake_at

    @pytest.mark.parametrize(
        ("misfire", "late_s", "brought", "missed"),
        [
            ("once", 0, 1, 0), ("once", 250, 1, 2), ("skip", 59, 1, 0), ("skip", 61, 0, 1),
            ("skip", 250, 1, 2), ("skip", 261, 0, 3),
            ("all", 250, 3, 0), ("all", 1e6, 20, 9981), ("all", 0, 1, 0),
        ],
    )  # fmt: skip
    def test_what_was_missed_brings_what_its_policy_says(
        self, misfire: Any, late_s: float, brought: int, missed: int
    ) -> None:
        """Every slot is one or the other, and none comes twice."""
        row = replace(woken(in_s=10, recurring_s=100), misfire=misfire)
        names = tuple(f"mbx_{n}" for n in range(ALL_AT_MOST))
        assert row.wake_at is not None
        items, again = fired(row, names, row.wake_at + timedelta(seconds=late_s))
        assert isinstance(again, c.CallbackRearmed)
        assert tuple(item.item_id for item in items) == again.item_ids == names[:brought]
        assert again.missed == missed
        assert again.wake_at == row.wake_at + (brought + missed) * timedelta(seconds=100)

    def test_a_cancelled_one_is_over(self) -> None:
        """And cannot be cancelled again."""
        row = woken(in_s=1)
        event = cancelled(row, "ada")
        assert event is not None
        assert cancelled(folded_on(row, event), "ada") is None
        assert CancelWakeup("x").wakeup_id == "x"


def folded_on(row: CallbackRow, event: Event) -> CallbackRow:
    after = reduce_callback(row, Recorded("e", "agent:ada", 9, event, Meta(), BEGAN))
    assert after is not None
    return after


class TestOverdue:
    """Nothing came in time."""

    def test_193_it_is_told_once_and_may_still_come_late(self) -> None:
        """In a heartbeat, and then as what it is."""
        row = folded(background(RunInBackground("make test", 5), ASKING, "h1"))
        assert overdue(row, BEGAN + timedelta(seconds=600)) is None
        told = overdue(row, BEGAN + timedelta(seconds=601))
        assert told is not None
        assert (told.label, told.session_id) == ("make test", "ses_ada")
        beat = HeartbeatEnqueued(
            agent_id="ada", item_id="mbx_7", by="timer", fingerprint="", next_at=None,
            overdue=("cbk_1",),
        )  # fmt: skip
        late = folded_on(row, beat)
        assert isinstance(late.phase, TimedOut)
        assert overdue(late, BEGAN + timedelta(days=1)) is None
        brought, done = completed(late, "mbx_8", Ended(0, 700.0, "fine", ""))
        assert done.late
        assert "late" in brought.payload.content
        assert isinstance(folded_on(late, done).phase, Resolved)

    def test_a_wakeup_never_is(self) -> None:
        """It comes when it comes."""
        assert overdue(woken(in_s=1), BEGAN + timedelta(days=400)) is None


class TestMessages:
    """What agents write to each other."""

    def test_a_message_says_which_conversation_it_is_of(self) -> None:
        """The same call is the same message, whoever speaks the same channel."""
        key = "trn_1:call_1"
        said = message(Sender("ada", None, "agent"), "bob", "how far?", conversation_of(key), key)
        again = message(Sender("ada", None, "agent"), "bob", "how far?", conversation_of(key), key)
        assert said == again
        assert conversations(said) == (conversation_of(key),)
        assert said.payload.extra["channelKey"] == direct_channel("bob", "ada")

    def test_188_a_reply_is_expected_for_half_an_hour(self) -> None:
        """In the session that asked."""
        row = folded(reply("conv_1", "reply of bob", ASKING))
        assert (row.type, row.delivery, row.timeout_s) == ("a2a_reply", "in_session", 1800)
        assert (row.correlation_id, row.origin_session_id) == ("conv_1", "ses_ada")
