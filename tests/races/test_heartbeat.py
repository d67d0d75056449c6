"""What the clock brings, on a real database: once a slot, whoever looks.

Time does not pass here: the events that put a beat's time into the past are real ones.
"""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from typing import Any

import pytest

from tests.races.hand import hired
from tests.races.staging import Stage
from tests.races.test_interrupts import send
from tests.support.lives import BY
from undivided.domain import agents as rules
from undivided.domain.agents import CreateAgent
from undivided.domain.errors import Rejected
from undivided.domain.events import heartbeats as h
from undivided.domain.events.agents import AgentConfigured
from undivided.domain.events.items import ItemDropped, StimulusAccepted
from undivided.domain.events.sessions import ToolCallFinished, TurnEnded, TurnStarted
from undivided.domain.outcomes import Incomplete
from undivided.domain.policy import DEFAULT_POLICY
from undivided.domain.recorded import agent_stream
from undivided.domain.state.heartbeat import HeartbeatRow
from undivided.store import beating
from undivided.store.commands import agents
from undivided.store.commands.heartbeats import ask_for_beat
from undivided.store.fresh import fresh_id
from undivided.store.log import Addition, Log
from undivided.store.settings import Settings
from undivided.workers.beats import ASLEEP_EVERY, Beats

DAY_S = 86_400.0


async def born(log: Log, agent_id: str = "ada", **policy: Any) -> None:
    """An agent with a policy of its own."""
    command = CreateAgent(agent_id=agent_id, name=agent_id, policy=policy)
    events = rules.create(DEFAULT_POLICY, command)
    await log.append([Addition(agent_stream(agent_id), 0, events)], BY)


async def due(log: Log, ago_s: float = 0, agent_id: str = "ada") -> None:
    """An agent's next beat was to come so many seconds ago, and is due now."""
    async with log.locked(agent_id) as tx:
        at = tx.view.now - timedelta(seconds=ago_s)
        told = h.HeartbeatScheduled(agent_id=agent_id, next_at=at, missed_s=0)
        await tx.append([tx.addition(told)], BY)


async def skipped(log: Log, ago_s: float, streak: int, awake_ago_s: float | None = None) -> None:
    """Ada's last beat was skipped; the next was to come so many seconds ago."""
    async with log.locked("ada") as tx:
        now = tx.view.now
        awake = None if awake_ago_s is None else now - timedelta(seconds=awake_ago_s)
        told = h.HeartbeatSkipped(
            agent_id="ada", reason="idle", streak=streak, pace_s=DAY_S / 2,
            next_at=now - timedelta(seconds=ago_s), awake_at=awake,
        )  # fmt: skip
        await tx.append([tx.addition(told)], BY)


async def all_due(log: Log) -> None:
    """Everything that the clock can bring to ada is due."""
    await due(log)
    async with log.locked("ada") as tx:
        now = tx.view.now
        report = h.DailyReportScheduled(agent_id="ada", next_at=now)
        dream = h.MemoryConsolidationSkipped(agent_id="ada", reason="nothing_new", next_at=now)
        await tx.append([tx.addition(report, dream)], BY)


async def row_of(log: Log, agent_id: str = "ada") -> HeartbeatRow:
    async with log.locked(agent_id) as tx:
        row: HeartbeatRow | None = await tx.row("heartbeats", agent_id)
    assert row is not None
    return row


async def reasons(stage: Stage) -> list[str]:
    """Why beats were skipped."""
    return [one.reason for one in await stage.events(h.HeartbeatSkipped)]


class TestOnceASlot:
    """Any number of workers may look at the same moment."""

    async def test_two_workers_race_for_one_slot(
        self, log: Log, stage: Stage, settings: Settings
    ) -> None:
        """Both have found the agent due; the second finds the slot taken."""
        await born(log, dailyReportAt="20:00")
        await send(log, "a2a_message", "news")
        await all_due(log)
        async with hired(settings) as one, hired(settings) as other:
            for hand in (one, other):
                assert await beating.due(hand.log.database, 10) == ["ada"]
            async with stage.holding(agent_stream("ada")):
                first = await stage.begin_waiting(beating.ring(one.outlet, "ada"))
                second = await stage.begin_waiting(beating.ring(other.outlet, "ada"))
            assert sorted(await asyncio.gather(first, second)) == [False, True]
            assert await beating.due(one.log.database, 10) == []
            assert [*one.bell.rung, *other.bell.rung] == ["ada"]
        for kind in (
            h.HeartbeatEnqueued, h.DailyReportEnqueued, h.MemoryConsolidationEnqueued,
        ):  # fmt: skip
            assert len(await stage.events(kind)) == 1
        brought = [one.source_type for one in await stage.events(StimulusAccepted)]
        assert brought == ["a2a_message", "heartbeat", "daily_report", "memory_consolidation"]

    async def test_many_workers_and_many_agents(
        self, log: Log, stage: Stage, settings: Settings
    ) -> None:
        """Each agent has one beat, whoever brought it."""
        names = [f"agent-{n}" for n in range(6)]
        for name in names:
            await born(log, name)
            await due(log, agent_id=name)
        async with hired(settings) as one, hired(settings) as other:
            hands = [Beats(hand.outlet) for hand in (one, other, one)]
            brought = await asyncio.gather(*(beats.look() for beats in hands))
        assert sum(brought) == len(names)
        beats_of = sorted(one.agent_id for one in await stage.events(h.HeartbeatEnqueued))
        assert beats_of == names

    async def test_after_a_long_absence_there_is_one_beat(
        self, log: Log, stage: Stage, settings: Settings
    ) -> None:
        """It is first moved to a time of the agent's own, and then comes, once."""
        await born(log)
        await skipped(log, 30 * DAY_S, 0)
        async with hired(settings) as hand:
            beats = Beats(hand.outlet)
            assert await beats.look() == 1
            (moved,) = await stage.events(h.HeartbeatScheduled)
            assert moved.missed_s >= 30 * DAY_S
            assert await beats.look() == 0
            await due(log, 5 * DAY_S)
            assert await beats.look() == 1
            assert await beats.look() == 0
        assert len(await stage.events(h.HeartbeatEnqueued)) == 1
        row = await row_of(log)
        assert row.next_at > log.database.clock.now()

    async def test_what_dies_before_its_commit_leaves_the_slot_due(
        self, log: Log, stage: Stage, settings: Settings
    ) -> None:
        """Nothing was written, and whoever looks next brings the beat."""
        await born(log)
        await due(log)
        async with hired(settings) as hand:
            async with stage.holding(agent_stream("ada")):
                dying = await stage.begin_waiting(beating.ring(hand.outlet, "ada"))
                dying.cancel()
                await asyncio.gather(dying, return_exceptions=True)
            assert await stage.events(h.HeartbeatEnqueued) == []
        async with hired(settings) as hand:
            assert await Beats(hand.outlet).look() == 1
        assert len(await stage.events(h.HeartbeatEnqueued)) == 1


class TestGivingWay:
    """What a beat is skipped for."""

    async def test_a_persons_message_comes_first(
        self, log: Log, stage: Stage, settings: Settings
    ) -> None:
        """While it waits, and while it is being answered."""
        await born(log)
        await send(log, "human_chat", "hello", sender="bob", role="user")
        async with hired(settings) as hand:
            await due(log)
            await beating.ring(hand.outlet, "ada")
            assert await reasons(stage) == ["person_first"]
            at_work = await hand.at_the_model("ada")
            await due(log)
            await beating.ring(hand.outlet, "ada")
            assert await reasons(stage) == ["person_first", "person_first"]
            hand.model.gate.set()
            await at_work
            await due(log)
            await beating.ring(hand.outlet, "ada")
        assert len(await stage.events(h.HeartbeatEnqueued)) == 1

    async def test_one_beat_at_a_time(self, log: Log, stage: Stage, settings: Settings) -> None:
        """While the last one waits or is at work there is no other."""
        await born(log)
        async with hired(settings) as hand:
            await due(log)
            await beating.ring(hand.outlet, "ada")
            await due(log)
            await beating.ring(hand.outlet, "ada")
            at_work = await hand.at_the_model("ada")
            await due(log)
            await beating.ring(hand.outlet, "ada")
            assert await reasons(stage) == ["still_there", "still_there"]
            with pytest.raises(Rejected) as refusal:
                await ask_for_beat(hand.outlet, "ada", fresh_id("mbx"), BY)
            assert refusal.value.code == "heartbeat_waits"
            hand.model.gate.set()
            await at_work
        (turn,) = await stage.events(TurnStarted)
        assert turn.scenario == "heartbeat"
        assert "This is a heartbeat" in hand.model.inputs()[0]

    async def test_a_beat_takes_the_place_of_one_that_somebody_sent(
        self, log: Log, stage: Stage, settings: Settings
    ) -> None:
        """Of heartbeats only the newest waits."""
        await born(log)
        old = await send(log, "heartbeat", "patrol")
        await due(log)
        async with hired(settings) as hand:
            await beating.ring(hand.outlet, "ada")
        (dropped,) = await stage.events(ItemDropped)
        assert dropped.item_id == old
        async with log.locked("ada") as tx:
            assert tx.agent.waiting == 1

    async def test_a_beat_has_fewer_requests(
        self, log: Log, stage: Stage, settings: Settings
    ) -> None:
        """Than a turn that somebody asked for."""
        await born(log, heartbeatMaxToolIterations=2)
        await due(log)
        async with hired(settings) as hand:
            await beating.ring(hand.outlet, "ada")
            hand.model.calls = [[("test_return", {"value": "x"})] for _ in range(5)]
            await hand.attend("ada")
            assert len(hand.model.asked) == 2
        (end,) = await stage.events(TurnEnded)
        assert isinstance(end.outcome, Incomplete)

    async def test_a_stopped_agents_heart_does_not_beat(
        self, log: Log, stage: Stage, settings: Settings
    ) -> None:
        """Started again it is as if nobody had worked meanwhile."""
        await born(log)
        async with hired(settings) as hand:
            await agents.stop(hand.outlet, "ada", BY)
            await skipped(log, DAY_S, 0)
            assert await Beats(hand.outlet).look() == 0
            await agents.start(hand.outlet, "ada", BY)
            assert await Beats(hand.outlet).look() == 1
        (moved,) = await stage.events(h.HeartbeatScheduled)
        assert moved.missed_s >= DAY_S
        assert await stage.events(h.HeartbeatEnqueued) == []


class TestSleepingDeeply:
    """The longer pace, and what ends it."""

    async def test_197_what_arrives_wakes_the_agent(
        self, log: Log, stage: Stage, settings: Settings
    ) -> None:
        """Nothing is due for hours; then mail comes, and the beat comes at the usual pace."""
        await born(log)
        async with hired(settings) as hand:
            await due(log)
            await beating.ring(hand.outlet, "ada")
            await hand.attend("ada")
            await skipped(log, -DAY_S, 3, awake_ago_s=5)
            beats = Beats(hand.outlet)
            assert await beats.look() == 0
            await send(log, "a2a_message", "wake up")
            looked = [await beats.look() for _ in range(ASLEEP_EVERY)]
        assert looked == [0] * (ASLEEP_EVERY - 1) + [1]
        assert len(await stage.events(h.HeartbeatEnqueued)) == 2
        row = await row_of(log)
        assert (row.streak, row.pace_s) == (0, DAY_S / 4)

    async def test_an_idle_beat_asks_no_model(
        self, log: Log, stage: Stage, settings: Settings
    ) -> None:
        """It is a line of history, and neither an item nor a turn."""
        await born(log)
        async with hired(settings) as hand:
            await due(log)
            await beating.ring(hand.outlet, "ada")
            await hand.attend("ada")
            for _ in range(3):
                await due(log)
                await beating.ring(hand.outlet, "ada")
        assert await reasons(stage) == ["idle"] * 3
        assert len(await stage.events(TurnStarted)) == 1
        assert (await stage.events(h.HeartbeatSkipped))[-1].pace_s == DAY_S / 2


class TestSettingThePace:
    """The agent's own tool."""

    @pytest.mark.parametrize(
        ("args", "kept_s", "clamped"),
        [({"interval_minutes": 30}, 1800, False), ({"interval_ms": 60_000}, 300, True)],
    )
    async def test_196_the_tool_tells_what_it_came_to(
        self, log: Log, stage: Stage, settings: Settings, args: dict[str, object], kept_s: float,
        clamped: bool,
    ) -> None:  # fmt: skip
        """It applies at once, and is part of the agent's configuration."""
        await born(log)
        await send(log, "system_event", "look around more often")
        async with hired(settings) as hand:
            hand.model.calls = [[("set_heartbeat_interval", args)]]
            await hand.attend("ada")
        (done,) = await stage.events(ToolCallFinished)
        assert json.loads(done.content) == {
            "status": "ok", "interval_ms": kept_s * 1000, "interval_minutes": kept_s / 60,
            "clamped": clamped,
        }  # fmt: skip
        (configured,) = await stage.events(AgentConfigured)
        assert configured.heartbeat_interval_s == kept_s
        row = await row_of(log)
        assert (row.interval_s, row.pace_s) == (kept_s, kept_s)

    async def test_neither_unit_is_an_error(
        self, log: Log, stage: Stage, settings: Settings
    ) -> None:
        await born(log)
        await send(log, "system_event", "look around more often")
        async with hired(settings) as hand:
            hand.model.calls = [[("set_heartbeat_interval", {"interval_minutes": 0})]]
            await hand.attend("ada")
        (done,) = await stage.events(ToolCallFinished)
        assert done.resolution == "raised"
        assert "more than 0" in done.content
        assert await stage.events(AgentConfigured) == []
