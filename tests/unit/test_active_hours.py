"""The hours of an agent's own day, over zones and changes of their clocks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given as example
from hypothesis import strategies as st

from undivided.domain.active_hours import Hours, hours_of, is_active, local_minute, next_slot
from undivided.domain.errors import Invalid
from undivided.domain.policy import DEFAULT_POLICY, adopt

NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)
ZONES = st.sampled_from(
    ["UTC", "America/Los_Angeles", "Europe/Berlin", "Asia/Tokyo", "Australia/Lord_Howe",
     "America/Santiago", "Asia/Kathmandu", "Pacific/Apia", "Africa/Cairo"]
)  # fmt: skip
MOMENTS = st.integers(0, 19 * 365 * 86_400).map(
    lambda seconds: datetime(2011, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
)
"""Over every rule that these zones have had since, the day that Samoa left out included."""
MINUTES = st.integers(0, 24 * 60 - 1)


class TestActiveHours:
    """The hours of an agent's own day."""

    def test_195_hours_are_those_of_the_zone(self) -> None:
        """Noon UTC in July, in three zones; the start is active and the end is not."""
        los, tokyo = "America/Los_Angeles", "Asia/Tokyo"
        assert [local_minute(zone, NOON) for zone in ("UTC", los, tokyo)] == [720, 300, 1260]
        day, night = (8 * 60, 22 * 60), (22 * 60, 6 * 60)
        assert [is_active(Hours(*day, zone), NOON) for zone in ("UTC", los, tokyo)] == [
            True, False, True,
        ]  # fmt: skip
        assert is_active(Hours(*night, los), NOON)
        assert not is_active(Hours(*night, tokyo), NOON)
        assert is_active(Hours(720, 721, "UTC"), NOON)
        assert not is_active(Hours(700, 720, "UTC"), NOON)
        assert not is_active(Hours(720, 720, "UTC"), NOON)

    def test_195_an_unknown_zone_is_told(self) -> None:
        """The hours are then UTC's, the same on every host, and the answer says so."""
        policy = adopt(DEFAULT_POLICY, {
            "activeHoursStart": "08:00", "activeHoursEnd": "22:00", "timezone": "Mars/Olympus",
        })  # fmt: skip
        hours = hours_of(policy)
        assert hours is not None
        assert (hours.zone, "Mars/Olympus" in hours.note) == ("UTC", True)

    @pytest.mark.parametrize(
        "policy",
        [{"activeHoursStart": "8:00", "activeHoursEnd": "22:00"}, {"activeHoursStart": "08:00"},
         {"dailyReportAt": "24:00"}, {"memoryConsolidationS": 1}],
    )  # fmt: skip
    def test_hours_that_are_none_are_refused(self, policy: dict[str, Any]) -> None:
        with pytest.raises(Invalid, match="policy"):
            adopt(DEFAULT_POLICY, policy)

    @pytest.mark.parametrize(
        ("zone", "before"),
        [("Europe/Berlin", datetime(2026, 3, 29, 0, 30, tzinfo=UTC)),
         ("Europe/Berlin", datetime(2026, 10, 25, 0, 30, tzinfo=UTC)),
         ("America/Los_Angeles", datetime(2026, 3, 8, 9, 30, tzinfo=UTC)),
         ("Australia/Lord_Howe", datetime(2026, 4, 4, 14, 30, tzinfo=UTC))],
    )  # fmt: skip
    def test_hours_hold_across_a_change_of_the_clocks(self, zone: str, before: datetime) -> None:
        """Eight o'clock is what clocks show as eight, on either side."""
        hours = Hours(8 * 60, 9 * 60, zone)
        for day in (-1, 0, 1):
            there = (before.astimezone(ZoneInfo(zone)) + timedelta(days=day)).replace(
                hour=8, minute=0
            )
            assert is_active(hours, there.astimezone(UTC))
            assert not is_active(hours, there.astimezone(UTC) - timedelta(minutes=1))
            assert not is_active(hours, there.replace(hour=9).astimezone(UTC))

    @example(ZONES, MOMENTS, MINUTES, MINUTES, st.floats(300, 86_400), st.floats(0, 1e6))
    def test_a_slot_is_after_now_and_active(
        self, zone: str, now: datetime, start: int, end: int, pace_s: float, ago_s: float
    ) -> None:
        """Over any zone and any change of its clocks; where the hours are none, it still is one."""
        hours = Hours(start, end, zone)
        slot = next_slot(hours, now - timedelta(seconds=ago_s), pace_s, now)
        assert slot > now
        assert start == end or is_active(hours, slot)
        assert slot - now <= timedelta(seconds=pace_s) + timedelta(days=2)
