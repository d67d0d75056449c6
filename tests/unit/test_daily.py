"""Daily reports and memory consolidations: when they are asked for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given as example
from hypothesis import strategies as st

from tests.support.events import BEGAN
from tests.support.spec import AGENT, Situation, given
from tests.unit.test_active_hours import MINUTES, MOMENTS, ZONES
from tests.unit.test_heartbeat import NOTHING, item, later, row_of
from undivided.domain.beats import Brought, Moment, Seen
from undivided.domain.daily_report import day_of, next_slot, report, report_asked_for
from undivided.domain.events import agents as a
from undivided.domain.events import heartbeats as h
from undivided.domain.memory_consolidation import consolidate
from undivided.domain.policy import DEFAULT_POLICY, adopt
from undivided.domain.ringing import rings
from undivided.domain.state.item import Queued

BERLIN = {"dailyReportAt": "20:00", "timezone": "Europe/Berlin"}
FIRST = datetime(2026, 1, 1, 19, tzinfo=UTC)


def moment(now: Situation, room: int = 5, **seen: Any) -> Moment:
    known = Seen(now=now.now, there=NOTHING, **seen)
    return Moment(now.agent, row_of(now), known, "mbx_d", room)


def reporting(now: Situation, room: int = 5) -> Brought:
    return report(moment(now, room))


def placed(**policy: Any) -> Situation:
    """An agent whose first report has its slot, at that slot."""
    now = given(**{**BERLIN, **policy})
    now = later(now, *reporting(now).events)
    at = row_of(now).report_at
    assert at is not None
    return Situation(now.rows, at)


class TestSlots:
    """One a day, whatever the clocks do."""

    @example(ZONES, MOMENTS, MINUTES)
    def test_a_day_has_one_slot(self, zone: str, after: datetime, minute: int) -> None:
        """Each is on a later day than the one before, and none is more than a day away or two."""
        time = f"{minute // 60:02d}:{minute % 60:02d}"
        slot, days = after, []
        for _ in range(4):
            before, slot = slot, next_slot(time, zone, slot)
            assert slot > before
            assert slot - before <= timedelta(days=2)
            days.append(day_of(slot, zone))
        assert days == sorted(set(days))

    def test_a_time_that_the_clocks_skip_is_later(self) -> None:
        """02:30 on the last Sunday of March is 03:30 in Berlin."""
        slot = next_slot("02:30", "Europe/Berlin", datetime(2026, 3, 28, 12, tzinfo=UTC))
        assert slot == datetime(2026, 3, 29, 1, 30, tzinfo=UTC)

    def test_a_time_that_they_show_twice_is_the_first(self) -> None:
        """02:30 on the last Sunday of October; the second is nobody's slot."""
        slot = next_slot("02:30", "Europe/Berlin", datetime(2026, 10, 24, 12, tzinfo=UTC))
        assert slot == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
        assert next_slot("02:30", "Europe/Berlin", slot) == datetime(
            2026, 10, 26, 1, 30, tzinfo=UTC
        )


class TestReporting:
    """Once a day, at the time that the policy says."""

    def test_without_a_time_there_is_none(self) -> None:
        assert reporting(given().after(1e6)) == Brought()

    def test_it_is_asked_for_at_its_time(self) -> None:
        now = placed()
        assert now.now == FIRST
        brought = reporting(now)
        (told,) = brought.events
        assert told == h.DailyReportEnqueued(
            agent_id=AGENT, item_id="mbx_d", by="timer", day="2026-01-01",
            next_at=FIRST + timedelta(days=1),
        )  # fmt: skip
        assert brought.command is not None
        assert brought.command.source_type == "daily_report"
        assert brought.command.payload.extra == {"by": "timer", "day": "2026-01-01"}
        assert reporting(later(now, told)) == Brought()

    def test_one_that_was_missed_is_made_up_while_its_day_lasts(self) -> None:
        (told,) = reporting(placed().after(3.9 * 3600)).events
        assert isinstance(told, h.DailyReportEnqueued)
        assert told.day == "2026-01-01"

    def test_one_of_an_earlier_day_is_not(self) -> None:
        """History says that it is missing; the next has its own slot."""
        (told,) = reporting(placed().after(50 * 3600)).events
        assert told == h.DailyReportScheduled(
            agent_id=AGENT, next_at=FIRST + timedelta(days=3), missed="2026-01-01"
        )

    def test_one_late_in_the_evening_is_not_lost_at_midnight(self) -> None:
        (told,) = reporting(placed(dailyReportAt="23:59").after(120)).events
        assert isinstance(told, h.DailyReportEnqueued)
        assert told.day == "2026-01-01"

    def test_one_that_a_person_asked_for_is_the_days(self) -> None:
        now = placed()
        (told,) = report_asked_for(moment(now)).events
        now = later(now, told)
        (then,) = reporting(now).events
        assert then == h.DailyReportScheduled(agent_id=AGENT, next_at=FIRST + timedelta(days=1))

    def test_a_full_mailbox_puts_it_off(self) -> None:
        (told,) = reporting(placed(), room=0).events
        assert told == h.DailyReportScheduled(agent_id=AGENT, next_at=FIRST + timedelta(minutes=5))

    def test_another_time_is_reckoned_anew(self) -> None:
        now = placed()
        policy = adopt(DEFAULT_POLICY, {**BERLIN, "dailyReportAt": "21:00"})
        now = later(now, a.PolicyAdopted(agent_id=AGENT, policy=policy, version=2))
        (told,) = reporting(now).events
        assert told == h.DailyReportScheduled(agent_id=AGENT, next_at=FIRST + timedelta(hours=1))


class TestConsolidating:
    """Every few hours, if anything came."""

    def at_slot(self, **policy: Any) -> Situation:
        now = given(**policy)
        at = row_of(now).consolidate_at
        assert at is not None
        return Situation(now.rows, at)

    def test_only_where_something_came(self) -> None:
        now = self.at_slot()
        (told,) = consolidate(moment(now)).events
        assert told == h.MemoryConsolidationSkipped(
            agent_id=AGENT, reason="nothing_new", next_at=now.now + timedelta(hours=4)
        )
        brought = consolidate(moment(now, news=True))
        (told,) = brought.events
        assert isinstance(told, h.MemoryConsolidationEnqueued)
        assert brought.command is not None
        assert brought.command.source_type == "memory_consolidation"
        assert consolidate(moment(later(now, told), news=True)) == Brought()

    def test_it_gives_way(self) -> None:
        """To one that is not over, to a full mailbox, and after a long absence to everybody."""
        now = self.at_slot()
        for situation, room, seen, reason in (
            (now, 5, {"consolidation": item(Queued())}, "still_there"),
            (now, 0, {}, "mailbox_full"),
            (now.after(61), 5, {}, "missed"),
        ):
            (told,) = consolidate(moment(situation, room, news=True, **seen)).events
            assert isinstance(told, h.MemoryConsolidationSkipped)
            assert told.reason == reason
            assert told.next_at > situation.now

    def test_a_policy_can_switch_it_off(self) -> None:
        assert row_of(given(memoryConsolidationS=0)).consolidate_at is None


class TestTogether:
    """All that is due at one moment enters the mailbox in one append."""

    @example(st.floats(0, 10**6), st.booleans(), st.integers(0, 4))
    def test_what_is_due_is_decided_once(self, later_s: float, news: bool, capacity: int) -> None:
        """Afterwards nothing is due, and the mailbox was never overfilled."""
        now = given(**BERLIN, mailboxCapacity=max(1, capacity)).after(later_s)
        for _ in range(3):
            seen = Seen(now=now.now, there=NOTHING, news=news)
            events = rings(now.agent, row_of(now), seen, ("m1", "m2", "m3"))
            now = later(now, *events)
            assert now.agent.waiting <= now.agent.policy.mailbox_capacity
        assert rings(now.agent, row_of(now), seen, ("m1", "m2", "m3")) == ()

    def test_nothing_comes_of_nothing(self) -> None:
        now = given()
        seen = Seen(now=BEGAN, there=NOTHING, news=True)
        assert rings(now.agent, row_of(now), seen, ("m1", "m2", "m3")) == ()
