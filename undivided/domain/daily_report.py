"""The daily report: once a day, at a time of the agent's own day, it is asked what it did.

A slot is a time of day in a zone. Where the clocks skip that time, it is as much later; where
they show it twice, it is the first. So every day has one slot and no two days share one. A slot
that was missed is made up while its day lasts (or for an hour, late in the evening); a report of
an earlier day is not, and history says so.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta

from undivided.domain.active_hours import minute_of, zone_of
from undivided.domain.beats import Brought, Moment
from undivided.domain.events import heartbeats as h
from undivided.domain.stimuli import DAILY_REPORT

SUMMARY = "Daily report"
MADE_UP = timedelta(hours=1)
AGAIN = timedelta(minutes=5)
_DAYS = 3


def next_slot(time_of_day: str, zone: str, after: datetime) -> datetime:
    """The first slot after a moment."""
    minute, there = minute_of(time_of_day) or 0, zone_of(zone)
    at = time(minute // 60, minute % 60)
    today = after.astimezone(there).date()
    slots = (
        datetime.combine(today + timedelta(days=n), at, there).astimezone(UTC)
        for n in range(-1, _DAYS)
    )
    return next(slot for slot in slots if slot > after)


def day_of(slot: datetime, zone: str) -> date:
    """The date that a calendar in the zone shows."""
    return slot.astimezone(zone_of(zone)).date()


def report(moment: Moment) -> Brought:
    """What the time of day leads to."""
    row, now = moment.row, moment.seen.now
    if row.report_at is None or row.report_at > now or row.lifecycle != "started":
        return Brought()
    following = next_slot(row.report_time, row.report_zone, now)
    if not row.report_placed:
        return Brought((_scheduled(moment, following),))
    day = day_of(row.report_at, row.report_zone)
    if row.reported_day == day.isoformat():
        return Brought((_scheduled(moment, following),))
    if now - row.report_at > MADE_UP and day_of(now, row.report_zone) != day:
        return Brought((_scheduled(moment, following, day.isoformat()),))
    if moment.room < 1:
        return Brought((_scheduled(moment, now + AGAIN),))
    return _enqueued(moment, "timer", day, following)


def report_asked_for(moment: Moment) -> Brought:
    """The report that a person asks for; the day's own is then not asked for again."""
    day = day_of(moment.seen.now, moment.row.report_zone)
    return _enqueued(moment, "person", day, None)


def _scheduled(
    moment: Moment, following: datetime, missed: str | None = None
) -> h.DailyReportScheduled:
    return h.DailyReportScheduled(agent_id=moment.agent.id, next_at=following, missed=missed)


def _enqueued(moment: Moment, by: h.AskedBy, day: date, following: datetime | None) -> Brought:
    told = h.DailyReportEnqueued(
        agent_id=moment.agent.id, item_id=moment.item_id, by=by, day=day.isoformat(),
        next_at=following,
    )  # fmt: skip
    text = (
        f"Write your daily report for {day.isoformat()}: what was done, what is under way, what is "
        "blocked and by what, what comes next. Keep to what happened; a reader who was not there "
        "should understand it."
    )
    command = moment.stimulus(DAILY_REPORT, SUMMARY, text, by=by, day=day.isoformat())
    return Brought((told,), command)
