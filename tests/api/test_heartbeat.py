"""Heartbeats and daily reports over HTTP."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from tests.api import turns
from tests.api.calls import Api
from tests.races.test_heartbeat import due, skipped
from undivided.api.parts import Parts
from undivided.store import beating
from undivided.store.log import Log

HOUR = 3600


def seconds_between(earlier: str, later: str) -> float:
    return (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds()


class TestReading:
    """`GET /agents/{id}/heartbeat`."""

    async def test_a_new_agents_heart(self, api: Api) -> None:
        """Every six hours, the first within the first; no hours, no reports."""
        born = await api.agent("ada")
        told = await api.get("/agents/ada/heartbeat")
        assert (told["status"], told["heartbeatIntervalS"], told["paceS"]) == (
            "running", 6 * HOUR, 6 * HOUR,
        )  # fmt: skip
        assert 300 <= seconds_between(born["createdAt"], told["nextRunAt"]) <= 6 * HOUR
        assert [told[name] for name in (
            "deepSleep", "idleBeats", "lastRunAt", "lastItemId", "activeHours", "dailyReport",
        )] == [False, 0, None, None, None, None]  # fmt: skip
        assert told["memoryConsolidation"]["everyS"] == 4 * HOUR

    async def test_nobodys_heart(self, api: Api) -> None:
        for path in ("nobody", "%00", "a%20b"):
            await api.get(f"/agents/{path}/heartbeat", 404)
            await api.post(f"/agents/{path}/heartbeat/trigger", status=404)
            await api.post(f"/agents/{path}/daily-report", status=404)

    async def test_hours_and_reports_are_the_policys(self, api: Api) -> None:
        policy = {"activeHoursStart": "22:00", "activeHoursEnd": "06:00", "timezone": "Asia/Tokyo",
                  "dailyReportAt": "18:30", "memoryConsolidationS": 0}  # fmt: skip
        await api.agent("ada", policy=policy)
        told = await api.get("/agents/ada/heartbeat")
        assert told["activeHours"] == {"start": "22:00", "end": "06:00", "timezone": "Asia/Tokyo"}
        assert told["dailyReport"]["at"] == "18:30"
        assert told["memoryConsolidation"]["nextRunAt"] is None

    async def test_195_an_unknown_zone_is_told(self, api: Api) -> None:
        policy = {"activeHoursStart": "22:00", "activeHoursEnd": "06:00", "timezone": "No/Where"}
        await api.agent("ada", policy=policy)
        hours = (await api.get("/agents/ada/heartbeat"))["activeHours"]
        assert hours["timezone"] == "UTC"
        assert "No/Where" in hours["note"]

    async def test_197_as_it_was(self, api: Api, log: Log) -> None:
        """`at=`: asleep then, awake now."""
        await api.agent("ada")
        await skipped(log, -12 * HOUR, 3, awake_ago_s=-6 * HOUR)
        asleep = await api.get("/agents/ada/heartbeat")
        assert (asleep["deepSleep"], asleep["idleBeats"], asleep["paceS"]) == (True, 3, 12 * HOUR)
        await api.chat("ada", "good morning")
        awake = await api.get("/agents/ada/heartbeat")
        assert (awake["deepSleep"], awake["idleBeats"], awake["paceS"]) == (False, 0, 6 * HOUR)
        assert seconds_between(awake["nextRunAt"], asleep["nextRunAt"]) == 6 * HOUR
        then = await api.get("/agents/ada/heartbeat", at=asleep["position"])
        assert then == asleep
        await api.get("/agents/ada/heartbeat", 404, at="2020-01-01T00:00:00Z")

    async def test_a_stopped_agents_heart(self, api: Api) -> None:
        await api.agent("ada")
        await api.post("/agents/ada/stop", status=200)
        told = await api.get("/agents/ada/heartbeat")
        assert (told["status"], told["nextRunAt"]) == ("stopped", None)
        await api.agent("bob", policy={"heartbeat": False})
        assert (await api.get("/agents/bob/heartbeat"))["status"] == "off"


class TestSettingThePace:
    """`PATCH /agents/{id}` with `heartbeatIntervalS`."""

    @pytest.mark.parametrize(("given_s", "kept_s"), [(60, 300), (48 * HOUR, 24 * HOUR), (900, 900)])
    async def test_196_an_interval_is_clamped(
        self, api: Api, given_s: float, kept_s: float
    ) -> None:
        """And applies at once."""
        await api.agent("ada")
        answer = await api.client.patch("/api/agents/ada", json={"heartbeatIntervalS": given_s})
        assert answer.json()["heartbeatIntervalS"] == kept_s
        told = await api.get("/agents/ada/heartbeat")
        assert told["heartbeatIntervalS"] == told["paceS"] == kept_s
        changed = answer.json()["changedAt"]
        assert 300 <= seconds_between(changed, told["nextRunAt"]) <= kept_s

    @pytest.mark.parametrize("wrong", [0, -5, "often", 1e300])
    async def test_what_is_no_interval_is_refused(self, api: Api, wrong: Any) -> None:
        await api.agent("ada")
        answer = await api.client.patch("/api/agents/ada", json={"heartbeatIntervalS": wrong})
        assert answer.status_code == 422

    @pytest.mark.parametrize(
        "policy", [{"activeHoursStart": "8"}, {"dailyReportAt": "25:00"}, {"heartbeat": "yes"}]
    )
    async def test_what_is_no_hour_is_refused(self, api: Api, policy: dict[str, Any]) -> None:
        await api.post("/agents", {"id": "ada", "name": "Ada", "policy": policy}, 422)


class TestAskingForOne:
    """A beat or a report now."""

    async def test_a_beat_is_an_item_like_others(self, api: Api, log: Log) -> None:
        """At any hour, with the checklist as its content; the same request is one beat."""
        await api.agent("ada", policy={"activeHoursStart": "08:00", "activeHoursEnd": "08:00"})
        done = await api.post("/agents/ada/heartbeat/trigger", key="k")
        assert done["status"] == "queued"
        assert await api.post("/agents/ada/heartbeat/trigger", key="k") == done
        item = await api.get(f"/items/{done['itemId']}")
        assert (item["sourceType"], item["priority"]) == ("heartbeat", 3)
        assert item["payload"]["summary"] == "Heartbeat check-in"
        assert "## Checklist" in item["payload"]["content"]
        assert (await api.get("/agents/ada/heartbeat"))["lastItemId"] == done["itemId"]
        refused = await api.post("/agents/ada/heartbeat/trigger", status=409)
        assert refused["code"] == "heartbeat_waits"
        await turns.finish(log, await turns.begin(log, "ada"), "all is well")
        again = await api.post("/agents/ada/heartbeat/trigger")
        told = await api.get(f"/items/{again['itemId']}")
        assert "all is well" in told["payload"]["content"]

    async def test_a_beat_that_has_to_give_way(self, api: Api) -> None:
        await api.agent("ada")
        await api.chat("ada", "hello")
        refused = await api.post("/agents/ada/heartbeat/trigger", status=409)
        assert refused["code"] == "person_first"
        await api.post("/agents/ada/stop", status=200)
        refused = await api.post("/agents/ada/heartbeat/trigger", status=409)
        assert refused["code"] == "heartbeat_off"
        await api.post("/agents/ada/heartbeat/trigger", {"now": True}, 422)

    async def test_a_report(self, api: Api) -> None:
        """Of today, as the agent's own calendar shows it."""
        await api.agent("ada", policy={"dailyReportAt": "20:00", "timezone": "Europe/Berlin"})
        done = await api.post("/agents/ada/daily-report", key="k")
        assert await api.post("/agents/ada/daily-report", key="k") == done
        item = await api.get(f"/items/{done['itemId']}")
        assert (item["sourceType"], item["priority"]) == ("daily_report", 2)
        told = await api.get("/agents/ada/heartbeat")
        assert told["dailyReport"]["lastItemId"] == done["itemId"]
        assert told["dailyReport"]["lastDay"] == item["payload"]["extra"]["day"]

    async def test_a_full_mailbox_has_no_room(self, api: Api) -> None:
        await api.agent("ada", policy={"mailboxCapacity": 1})
        await api.post("/agents/ada/daily-report")
        await api.post("/agents/ada/daily-report", status=429)
        await api.post("/agents/ada/heartbeat/trigger", status=429)


async def test_a_beat_of_the_clock_is_told_as_such(api: Api, log: Log, parts: Parts) -> None:
    """Its event names the item, and the clock as who sent it."""
    await api.agent("ada")
    await due(log)
    assert await beating.ring(parts.outlet, "ada")
    (queued,) = (await api.get("/agents/ada/mailbox"))["queued"]
    assert queued["sourceType"] == "heartbeat"
    events = (await api.get("/events", type="heartbeat.enqueued"))["items"]
    assert [one["data"]["itemId"] for one in events] == [queued["id"]]
    assert events[0]["meta"]["actor"] == "clock"
