"""When an agent's heart beats, and when it does not: rules without a database."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given as example
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.support.events import BEGAN
from tests.support.spec import AGENT, Situation, accepted, given, recorded
from undivided.domain import pace
from undivided.domain.active_hours import hours_of, is_active
from undivided.domain.beats import Brought, Goal, Moment, Overdue, Seen, ThereIs, what_there_is
from undivided.domain.errors import Invalid, Rejected
from undivided.domain.events import agents as a
from undivided.domain.events import heartbeats as h
from undivided.domain.events.catalogue import Event
from undivided.domain.events.items import Payload, Sender
from undivided.domain.heartbeat import beat, beat_asked_for, beats_at, sleeps_deeply
from undivided.domain.heartbeat_prompt import prompt
from undivided.domain.interval import SetHeartbeatInterval, wanted_interval
from undivided.domain.outcomes import Completed
from undivided.domain.policy import DEFAULT_POLICY, adopt, iterations_of
from undivided.domain.state.heartbeat import HeartbeatRow
from undivided.domain.state.item import Done, ItemRow, Queued, Tries
from undivided.projections.table import fold

HOUR = 3600.0
NOTHING = ThereIs()
MAIL = ThereIs(mail=2)


def row_of(now: Situation) -> HeartbeatRow:
    row: HeartbeatRow = now.rows["heartbeats", AGENT]
    return row


def later(now: Situation, *events: Event, at: datetime | None = None) -> Situation:
    """What happened next, at the situation's moment or another."""
    rows = dict(now.rows)
    fold(rows, [recorded(n, one, at or now.now) for n, one in enumerate(events, start=100)])
    return Situation(rows, at or now.now)


def at_slot(now: Situation, late_s: float = 0) -> Situation:
    """The same when the next beat is due."""
    slot = beats_at(now.agent, row_of(now))
    assert slot is not None
    return Situation(now.rows, slot + timedelta(seconds=late_s))


def beating(there: ThereIs = NOTHING, **seen: Any) -> Any:
    """Let the heart decide; answers the events."""
    return lambda now: brought(now, there, **seen).events


def brought(now: Situation, there: ThereIs = NOTHING, room: int = 5, **seen: Any) -> Brought:
    known = Seen(now=now.now, there=there, **seen)
    return beat(Moment(now.agent, row_of(now), known, "mbx_b", room))


def beaten(**policy: Any) -> Situation:
    """An agent whose heart has beaten once, with nothing to do."""
    now = at_slot(given(**policy))
    return later(now, *brought(now).events)


def item(phase: Any) -> ItemRow:
    return ItemRow(
        id="mbx_b", agent_id=AGENT, source_type="heartbeat", category="system", priority=3, seq=1,
        delivery="queue", session_id=None, payload=Payload("x"), sender=Sender(), tries=Tries(),
        phase=phase, queued_at=BEGAN, accepted_by="e", correlation="e",
    )  # fmt: skip


class TestInterval:
    """How often, within bounds."""

    @pytest.mark.parametrize(
        ("given_s", "kept_s"),
        [(60, 300), (48 * HOUR, 24 * HOUR), (math.nan, 6 * HOUR), (math.inf, 6 * HOUR),
         (None, 6 * HOUR), (1800.12345, 1800.123), (300, 300), (-1, 300)],
    )  # fmt: skip
    def test_196_an_interval_is_clamped(self, given_s: float | None, kept_s: float) -> None:
        """One minute is five, 48 hours are 24, and what is no number is six hours."""
        assert pace.clamped(given_s) == kept_s

    @example(st.floats() | st.none())
    def test_no_interval_is_outside_its_bounds(self, given_s: float | None) -> None:
        assert 300 <= pace.clamped(given_s) <= 24 * HOUR
        assert pace.clamped(pace.clamped(given_s)) == pace.clamped(given_s)

    def test_the_tool_takes_either_unit(self) -> None:
        """Minutes win; neither is an error."""
        assert wanted_interval(30, 1) == SetHeartbeatInterval(1800)
        assert wanted_interval(None, 600_000) == SetHeartbeatInterval(600)
        assert wanted_interval(0, 600_000) == SetHeartbeatInterval(600)
        with pytest.raises(Invalid, match="more than 0"):
            wanted_interval(0, -1)

    def test_a_new_interval_applies_at_once(self) -> None:
        now = given(
            a.AgentConfigured(
                agent_id=AGENT, name="Ada", model="default", instructions="", tools=None,
                heartbeat_interval_s=60,
            )
        )  # fmt: skip
        row = row_of(now)
        assert (row.interval_s, row.next_at) == (300, BEGAN + timedelta(seconds=300))

    @example(st.text(), st.floats(300, 86_400))
    def test_agents_are_spread_over_the_interval(self, name: str, every_s: float) -> None:
        """Not in the first five minutes, and not later than one interval."""
        first = pace.first_at(name, BEGAN, every_s)
        assert timedelta(seconds=300) <= first - BEGAN <= timedelta(seconds=every_s)
        again = pace.again_at(name, BEGAN, every_s)
        assert timedelta(seconds=5) <= again - BEGAN <= timedelta(seconds=every_s)

    def test_a_thousand_agents_do_not_beat_at_once(self) -> None:
        tenths = {pace.spread(f"agent-{n}", 10) for n in range(1000)}
        assert tenths == set(range(10))


class TestBeating:
    """What a beat that is due leads to."""

    def test_nothing_before_its_time(self) -> None:
        now = given()
        assert row_of(now).next_at > BEGAN
        now.when(beating(MAIL)).nothing()

    def test_the_first_beat_always_comes(self) -> None:
        """Nobody knows yet whether there is nothing to do."""
        now = at_slot(given())
        first = brought(now)
        (told,) = first.events
        assert isinstance(told, h.HeartbeatEnqueued)
        assert (told.by, told.fingerprint) == ("timer", "")
        assert told.next_at == now.now + timedelta(hours=6)
        assert first.command is not None
        assert first.command.source_type == "heartbeat"

    @example(st.floats(0, 10**6))
    def test_however_late_it_is_there_is_one_beat(self, late_s: float) -> None:
        """The slots that passed bring no beats of their own, and the next is after now."""
        now = at_slot(beaten(), min(late_s, 60))
        (told,) = brought(now, MAIL).events
        assert isinstance(told, h.HeartbeatEnqueued)
        assert told.next_at is not None
        assert told.next_at > now.now
        now = later(now, told)
        now.when(beating(MAIL)).nothing()

    def test_a_beat_that_was_missed_comes_later_once(self) -> None:
        """So that after a restart not all agents beat at once; then it comes, however late."""
        now = at_slot(beaten(), 7200)
        (told,) = brought(now, MAIL).events
        assert isinstance(told, h.HeartbeatScheduled)
        assert told.missed_s == 7200
        assert told.next_at - now.now <= timedelta(hours=6)
        now = later(now, told)
        now.when(beating(MAIL)).nothing()
        (told,) = brought(at_slot(now, 7200), MAIL).events
        assert isinstance(told, h.HeartbeatEnqueued)

    @pytest.mark.parametrize(
        ("seen", "reason"),
        [({"person": True}, "person_first"), ({"beat": item(Queued())}, "still_there"),
         ({"room": 0}, "mailbox_full")],
    )  # fmt: skip
    def test_a_beat_that_has_to_give_way(self, seen: dict[str, Any], reason: str) -> None:
        """To a person, to the beat before it, to a full mailbox: it is skipped, not put off."""
        (told,) = brought(at_slot(beaten()), MAIL, **seen).events
        assert isinstance(told, h.HeartbeatSkipped)
        assert (told.reason, told.streak, told.pace_s) == (reason, 0, 6 * HOUR)

    def test_outside_active_hours_it_waits_for_them(self) -> None:
        policy = {"activeHoursStart": "08:00", "activeHoursEnd": "09:00", "timezone": "Asia/Tokyo"}
        now = at_slot(given(**policy))
        while is_active(hours_of(now.agent.policy), now.now):
            now = now.after(HOUR)
        now = later(now, h.HeartbeatScheduled(agent_id=AGENT, next_at=now.now, missed_s=0))
        (told,) = brought(now, MAIL).events
        assert isinstance(told, h.HeartbeatSkipped)
        assert told.reason == "outside_hours"
        assert is_active(hours_of(now.agent.policy), told.next_at)

    @pytest.mark.parametrize("event", [a.AgentStopped, a.AgentPaused, a.AgentDeleted])
    def test_whoever_is_not_started_has_no_beat(self, event: Any) -> None:
        now = later(given(), event(agent_id=AGENT)).after(1e6)
        assert beats_at(now.agent, row_of(now)) is None
        now.when(beating(MAIL)).nothing()

    def test_a_policy_can_switch_it_off(self) -> None:
        given(heartbeat=False).after(1e6).when(beating(MAIL)).nothing()

    def test_one_that_a_person_asks_for_comes_at_any_time(self) -> None:
        """And changes nothing about the others."""
        now = beaten(activeHoursStart="08:00", activeHoursEnd="08:01")
        seen = Seen(now=now.now, there=NOTHING)
        moment = Moment(now.agent, row_of(now), seen, "mbx_p", 1)
        (told,) = beat_asked_for(moment).events
        assert isinstance(told, h.HeartbeatEnqueued)
        assert told.by == "person"
        assert row_of(later(now, told)).next_at == row_of(now).next_at

    @pytest.mark.parametrize(
        ("seen", "code"),
        [({"person": True}, "person_first"), ({"beat": item(Queued())}, "heartbeat_waits")],
    )
    def test_one_that_a_person_asks_for_in_vain(self, seen: dict[str, Any], code: str) -> None:
        now = given()
        moment = Moment(now.agent, row_of(now), Seen(now=BEGAN, there=NOTHING, **seen), "mbx_p", 1)
        with pytest.raises(Rejected) as refusal:
            beat_asked_for(moment)
        assert refusal.value.code == code


class TestDeepSleep:
    """Three beats that find nothing to do."""

    def sleeper(self, interval_s: float = 6 * HOUR, beats: int = 3) -> Situation:
        now = given(
            a.AgentConfigured(
                agent_id=AGENT, name="Ada", model="default", instructions="", tools=None,
                heartbeat_interval_s=interval_s,
            )
        )  # fmt: skip
        now = at_slot(now)
        now = later(now, *brought(now).events)
        for _ in range(beats):
            now = at_slot(now)
            now = later(now, *brought(now).events)
        return now

    def test_idle_beats_are_skipped_and_counted(self) -> None:
        now = at_slot(beaten())
        (told,) = brought(now).events
        assert isinstance(told, h.HeartbeatSkipped)
        assert (told.reason, told.streak, told.awake_at) == ("idle", 1, None)

    @pytest.mark.parametrize(("interval_s", "pace_s"), [(6, 12), (20, 24), (24, 24)])
    def test_197_after_three_the_pace_doubles(self, interval_s: int, pace_s: int) -> None:
        """From the agent's own interval, to 24 hours at most; two are not enough."""
        now = self.sleeper(interval_s * HOUR)
        row = row_of(now)
        assert sleeps_deeply(now.agent, row)
        assert row.pace_s == pace_s * HOUR
        assert row.next_at - now.now == timedelta(hours=pace_s)
        two = self.sleeper(interval_s * HOUR, 2)
        assert not sleeps_deeply(two.agent, row_of(two))
        assert row_of(two).pace_s == interval_s * HOUR

    def test_197_something_to_do_keeps_awake(self) -> None:
        """Mail, goals, failed tasks or what is overdue: the beat comes, at the usual pace."""
        goal = Goal("g", "Ship", "in_progress", 1, 3, "")
        for there in (
            MAIL, ThereIs(goals=(goal,)), ThereIs(failed_tasks=(("t", "Build"),)),
            ThereIs(overdue=(Overdue("cb", "make", 610, "ses"),)),
        ):  # fmt: skip
            now = at_slot(self.sleeper())
            (told,) = brought(now, there).events
            assert isinstance(told, h.HeartbeatEnqueued)
            assert told.next_at == now.now + timedelta(hours=6)
            assert row_of(later(now, told)).streak == 0

    def test_197_what_reaches_the_agent_wakes_it(self) -> None:
        """The streak is over, and the next beat comes at the usual pace."""
        now = self.sleeper()
        slept = now.now
        now = later(now, accepted("i1"), at=slept + timedelta(minutes=1))
        assert not sleeps_deeply(now.agent, row_of(now))
        assert beats_at(now.agent, row_of(now)) == slept + timedelta(hours=6)
        now = at_slot(now)
        (told,) = brought(now).events
        assert isinstance(told, h.HeartbeatSkipped)
        assert (told.streak, told.pace_s) == (1, 6 * HOUR)

    @example(st.lists(st.sampled_from(["idle", "mail", "person", "arrival"]), max_size=20))
    def test_a_streak_is_of_idle_beats_alone(self, beats: list[str]) -> None:
        """And the pace is never but the interval or, from the third on, twice that."""
        now, streak = beaten(), 0
        for one in beats:
            now = at_slot(now)
            if one == "arrival":
                earlier = now.now - timedelta(minutes=1)
                now = Situation(later(now, accepted("i1"), at=earlier).rows, now.now)
                streak = 0
            first = row_of(now).fingerprint != ""
            there = MAIL if one == "mail" else NOTHING
            (told,) = brought(now, there, person=one == "person").events
            idle = one in ("idle", "arrival") and not first
            streak = streak + 1 if idle else 0
            assert isinstance(told, h.HeartbeatSkipped) == (idle or one == "person")
            now = later(now, told)
            assert row_of(now).streak == streak
            assert row_of(now).pace_s == (12 * HOUR if streak >= 3 else 6 * HOUR)


class TestWhatThereIs:
    """The fingerprint of what there is to do."""

    OVERDUE = st.builds(Overdue, st.text(max_size=3), st.text(), st.floats(0, 1e6), st.text())
    GOALS = st.builds(
        Goal, st.text(max_size=3), st.text(), st.text(max_size=3), st.integers(0, 3),
        st.integers(0, 3), st.text(),
    )  # fmt: skip
    THERE = st.builds(
        ThereIs, mail=st.integers(0, 3), overdue=st.lists(OVERDUE, max_size=3).map(tuple),
        goals=st.lists(GOALS, max_size=3).map(tuple),
        failed_tasks=st.lists(st.tuples(st.text(max_size=3), st.text()), max_size=3).map(tuple),
    )  # fmt: skip

    @example(THERE)
    def test_nothing_alone_has_the_empty_one(self, there: ThereIs) -> None:
        assert (there.fingerprint == "") == (there == NOTHING)

    @example(THERE, st.randoms(use_true_random=False))
    def test_order_and_time_do_not_matter(self, there: ThereIs, chance: Any) -> None:
        late = [replace(one, elapsed_s=one.elapsed_s + 1) for one in there.overdue]
        goals = list(there.goals)
        chance.shuffle(late)
        chance.shuffle(goals)
        same = replace(there, overdue=tuple(late), goals=tuple(goals))
        assert same.fingerprint == there.fingerprint

    def test_each_part_matters(self) -> None:
        """Mail, due callbacks, goals and their state, failed tasks."""
        goal = Goal("g", "Ship", "in_progress", 1, 3, "")
        prints = [
            ThereIs(mail=1), MAIL, ThereIs(goals=(goal,)), ThereIs(failed_tasks=(("g", "x"),)),
            ThereIs(goals=(replace(goal, iteration=2),)),
            ThereIs(overdue=(Overdue("g", "make", 1, "ses"),)),
        ]  # fmt: skip
        assert len({one.fingerprint for one in prints}) == len(prints)

    def test_beats_that_wait_are_no_mail(self) -> None:
        now = given(accepted("i1", "heartbeat", 3), accepted("i2"))
        assert what_there_is(now.agent, 1) == ThereIs(mail=1)


class TestPrompt:
    """What a beat says."""

    def test_a_section_about_nothing_is_left_out(self) -> None:
        text = prompt(NOTHING, None, None)
        assert text.startswith("This is a heartbeat")
        assert text.count("## ") == 1

    def test_193_what_is_overdue_is_listed(self) -> None:
        """With its label, how long it has been, and whose conversation it belongs to."""
        late = Overdue("cb_1", "make test", 610.4, "ses_1")
        goal = Goal("g", "Ship it", "in_progress", 2, 5, "users can pay")
        there = ThereIs(mail=3, overdue=(late,), goals=(goal,), failed_tasks=(("t9", "Build"),))
        text = prompt(there, None, None)
        assert "## Timed-Out Async Operations\n- make test (after 610 s, session ses_1)" in text
        assert "- Ship it: in_progress, iteration 2/5; criteria: users can pay" in text
        assert "## Failed Tasks\n- Build (t9)" in text
        assert "## Mailbox\n3 waiting" in text
        now = at_slot(beaten())
        (told,) = brought(now, there).events
        assert isinstance(told, h.HeartbeatEnqueued)
        assert told.overdue == ("cb_1",)

    def test_the_last_beat_is_told(self) -> None:
        done = item(Done("trn", BEGAN, BEGAN, Completed("all is well")))
        text = prompt(NOTHING, done, BEGAN)
        assert "## Last heartbeat, 2026-01-01 00:00 UTC\nall is well" in text


@pytest.mark.parametrize(
    ("usual", "own", "beats", "chats"),
    [(200, 30, 30, 200), (20, 30, 20, 20), (0, 30, 30, 0), (200, 0, 200, 200), (0, 0, 0, 0)],
)
def test_a_beat_has_fewer_requests(usual: int, own: int, beats: int, chats: int) -> None:
    """0 means any number, of either limit."""
    wanted = {"maxToolIterations": usual, "heartbeatMaxToolIterations": own}
    policy = adopt(DEFAULT_POLICY, wanted)
    assert (iterations_of(policy, "heartbeat"), iterations_of(policy, "chat")) == (beats, chats)
