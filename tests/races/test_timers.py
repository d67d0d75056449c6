"""Timers that meet what nobody wished for: a full mailbox, traces that say nothing, no agent."""

from __future__ import annotations

import asyncio
import json
import os
from datetime import timedelta
from pathlib import Path

import pytest

from tests.races.hand import hired
from tests.races.staging import Stage
from tests.races.test_callbacks import over, registered, rows, ticking, worker
from tests.races.test_interrupts import send
from tests.support.lives import BY, accept, create
from undivided.domain.callbacks import Asking, Ended, ScheduleWakeup, reply, wakeup
from undivided.domain.events import callbacks as c
from undivided.domain.events.catalogue import Event
from undivided.domain.events.heartbeats import HeartbeatEnqueued
from undivided.domain.events.items import StimulusAccepted
from undivided.domain.events.sessions import ToolCallFinished
from undivided.store.commands import agents
from undivided.store.commands import callbacks as commands
from undivided.store.log import Log
from undivided.store.settings import Settings
from undivided.workers.background.processes import STARTED_WITHIN, Processes

LONG_AGO = "2020-01-01T00:00:00Z"


@pytest.fixture
def processes(tmp_path: Path) -> Processes:
    """The processes of this host."""
    return Processes(tmp_path)


def due(log: Log, agent_id: str, name: str, at: str = LONG_AGO) -> Event:
    """A wakeup whose time has come."""
    act = ScheduleWakeup(None, at, None, name, "mailbox")
    return wakeup(act, Asking(agent_id, "trn_1", "ses_1", name), log.database.clock.now())


async def append(log: Log, agent_id: str, *events: Event) -> None:
    async with log.locked(agent_id) as tx:
        await tx.append([tx.addition(*events)], BY)


class TestOneHoldsUpNoOther:
    """What cannot be delivered to one agent waits by itself."""

    async def test_a_full_mailbox_does_not_starve_others(
        self, log: Log, stage: Stage, settings: Settings, processes: Processes
    ) -> None:
        """However much is due for it, and however long."""
        await create(log, "full", mailboxCapacity=1)
        await create(log, "ada")
        await accept(log, "full", "the one that fits")
        await append(log, "full", *(due(log, "full", f"wake_{n}") for n in range(60)))
        await append(log, "ada", due(log, "ada", "wake_ada", "2021-01-01T00:00:00Z"))
        async with worker(settings, processes) as (_, timers):
            await timers.tick()
        (done,) = await stage.events(c.CallbackResolved)
        assert done.callback_id == "wake_ada"

    @pytest.mark.parametrize("at", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
    async def test_a_moment_beyond_the_calendar_is_refused(
        self, log: Log, stage: Stage, settings: Settings, processes: Processes, at: str
    ) -> None:
        """It could be stored, and not be read again."""
        await create(log, "ada")
        await send(log, "system_event", "plan")
        async with worker(settings, processes) as (hand, timers):
            hand.model.calls = [[("schedule_wakeup", {"at": at})]]
            await hand.attend("ada")
            await timers.tick()
        assert await rows(stage) == []

    @pytest.mark.parametrize("name", ["result", "pid"])
    @pytest.mark.parametrize("text", [b"", b"{}", b"[1]", b"\xff", b'{"exit_code": "x"}'])
    async def test_traces_that_say_nothing_are_no_traces(
        self, log: Log, stage: Stage, settings: Settings, processes: Processes, tmp_path: Path,
        name: str, text: bytes,
    ) -> None:  # fmt: skip
        """A machine lost its power, or a command wrote there."""
        await create(log, "ada")
        row = await registered(log, "true")
        await processes.start(row, log.database.clock.now())
        await over(processes, log, row)
        (folder,) = (tmp_path / "runs").iterdir()
        (folder / "result").unlink()
        (folder / name).write_bytes(text)
        os.utime(folder / "claim", (0, 0))  # long ago
        async with worker(settings, processes) as (_, timers):
            await timers.tick()
        (done,) = await stage.events(c.CallbackResolved)
        assert (done.how, done.exit_code) == ("vanished", None)


class TestCommands:
    """Commands that cannot run."""

    @pytest.mark.parametrize("command", ["printf 'a\0b'", "echo " + "é" * 99_000])
    async def test_one_that_cannot_be_started_says_why(
        self, log: Log, processes: Processes, command: str
    ) -> None:
        """Nothing has vanished."""
        await create(log, "ada")
        row = await registered(log, command)
        await processes.start(row, log.database.clock.now())
        ended = await over(processes, log, row)
        assert ended.exit_code == 126
        assert ended.stderr


class TestTraces:
    """What a process leaves, and for how long."""

    async def test_an_old_look_starts_nothing_anew(
        self, log: Log, settings: Settings, processes: Processes, tmp_path: Path
    ) -> None:
        """A worker saw it registered; by the time it looks, the end was delivered."""
        await create(log, "ada")
        row = await registered(log, f"echo x >> {tmp_path}/witness")
        await processes.start(row, log.database.clock.now())
        ended = await over(processes, log, row)
        async with worker(settings, processes) as (hand, timers):
            await timers.tick()
            assert processes.look(row, log.database.clock.now()) == ended
            assert not await commands.complete(hand.outlet, row, ended)
            await processes.start(row, log.database.clock.now())
        assert (tmp_path / "witness").read_text() == "x\n"

    async def test_who_was_held_up_starts_nothing(
        self, log: Log, processes: Processes, tmp_path: Path
    ) -> None:
        """For a minute, between its look and the start: traces may be gone by then."""
        await create(log, "ada")
        row = await registered(log, f"echo x >> {tmp_path}/witness")
        await processes.start(row, row.registered_at + STARTED_WITHIN + timedelta(seconds=1))
        assert processes.look(row, log.database.clock.now()) == "startable"
        assert not (tmp_path / "witness").exists()

    async def test_they_go_once_nobody_can_start_it(
        self, log: Log, stage: Stage, settings: Settings, processes: Processes, tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:  # fmt: skip
        """Also those of a worker that died as soon as it had delivered; what runs keeps its own."""
        await create(log, "ada")
        done, still = await registered(log, "true"), await registered(log, "sleep 600", name="bg_2")
        for row in (done, still):
            await processes.start(row, log.database.clock.now())
        ended = await over(processes, log, done)
        runs = tmp_path / "runs"
        async with worker(settings, processes) as (hand, timers):
            assert await commands.complete(hand.outlet, done, ended)
            await timers.tick()
            assert len(list(runs.iterdir())) == 2
        monkeypatch.setattr("undivided.workers.background.processes.TRACED_FOR", timedelta(0))
        async with worker(settings, processes) as (hand, timers):
            await timers.tick()
            assert processes.traced() == ("bg_2",)
            await agents.delete(hand.outlet, "ada", BY)
            await ticking(timers, stage, c.CallbackCancelled)
        async with worker(settings, processes) as (_, timers):
            await timers.tick()
        assert list(runs.iterdir()) == []


class TestDeletedAgents:
    """Nobody would hear of what they asked for."""

    async def test_a_command_is_not_started(
        self, log: Log, stage: Stage, settings: Settings, processes: Processes, tmp_path: Path
    ) -> None:
        """It was registered, and then its agent went."""
        await create(log, "ada")
        await registered(log, f"echo x >> {tmp_path}/witness")
        async with worker(settings, processes) as (hand, timers):
            await agents.delete(hand.outlet, "ada", BY)
            await timers.tick()
        assert not (tmp_path / "witness").exists()
        assert await rows(stage) == [("bg_1", "cancelled")]

    async def test_a_command_that_runs_is_ended(
        self, log: Log, stage: Stage, settings: Settings, processes: Processes, tmp_path: Path
    ) -> None:
        """With its children, and its callback is closed once it is over."""
        await create(log, "ada")
        gate = tmp_path / "gate"
        os.mkfifo(gate)
        row = await registered(log, f"sleep 600 & echo $! > {gate}; wait")
        await processes.start(row, log.database.clock.now())
        child = int(await asyncio.to_thread(gate.read_text))
        async with worker(settings, processes) as (hand, timers):
            await agents.delete(hand.outlet, "ada", BY)
            await ticking(timers, stage, c.CallbackCancelled)
        assert not Path(f"/proc/{child}").exists() or "Z" in Path(f"/proc/{child}/stat").read_text()
        assert isinstance(await over(processes, log, row), Ended)

    async def test_a_command_that_nobody_started_is_started_by_nobody(
        self, log: Log, stage: Stage, settings: Settings, processes: Processes, tmp_path: Path
    ) -> None:
        """Not even by a worker that looked before its agent went."""
        await create(log, "ada")
        row = await registered(log, f"echo x >> {tmp_path}/witness")
        assert processes.look(row, log.database.clock.now()) == "startable"
        async with worker(settings, processes) as (hand, timers):
            await agents.delete(hand.outlet, "ada", BY)
            await timers.tick()
        await processes.start(row, log.database.clock.now())
        assert processes.look(row, log.database.clock.now()) == "running"  # claimed, by nobody
        assert not (tmp_path / "witness").exists()
        assert await rows(stage) == [("bg_1", "cancelled")]

    async def test_wakeups_and_replies_end_with_it(
        self, log: Log, stage: Stage, settings: Settings
    ) -> None:
        """In the append that ends the agent."""
        await create(log, "ada")
        asked = reply("c1", "reply of bob", Asking("ada", "t", "ses_1", "a2a_1"))
        await append(log, "ada", due(log, "ada", "wake_1"), asked)
        async with hired(settings) as hand:
            await agents.delete(hand.outlet, "ada", BY)
        assert sorted(await rows(stage)) == [("a2a_1", "cancelled"), ("wake_1", "cancelled")]


class TestLimits:
    """How much one agent can have to come."""

    async def test_what_is_overdue_takes_no_room(
        self, log: Log, stage: Stage, settings: Settings, processes: Processes,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:  # fmt: skip
        """A reply that never comes stays overdue for ever; what is pending counts."""
        monkeypatch.setattr(commands, "PENDING_AT_MOST", 1)
        await create(log, "ada")
        asked = reply("c1", "reply of bob", Asking("ada", "t", "ses_1", "a2a_1"))
        told = HeartbeatEnqueued(
            agent_id="ada", item_id="mbx_1", by="timer", fingerprint="", next_at=None,
            overdue=("a2a_1",),
        )  # fmt: skip
        await append(log, "ada", asked, told)
        await send(log, "system_event", "plan")
        async with worker(settings, processes) as (hand, _):
            hand.model.calls = [[("schedule_wakeup", {"in_seconds": n}) for n in (3600, 7200)]]
            await hand.attend("ada")
        first, second = [one.content for one in await stage.events(ToolCallFinished)]
        assert json.loads(first)["status"] == "scheduled"
        assert "1 callbacks are pending already" in second


class TestMissedSlots:
    """Slots that passed while nobody looked."""

    async def test_half_a_day_without_workers_is_not_replayed(
        self, log: Log, stage: Stage, settings: Settings, processes: Processes
    ) -> None:
        """C74: forty timers that missed 720 slots each come once each, and then in their slots."""
        await create(log, "ada", mailboxCapacity=100)
        now = log.database.clock.now()
        first = (now - timedelta(hours=12)).isoformat()
        act = ScheduleWakeup(None, first, 60, "look", "mailbox")
        names = [f"wake_{n}" for n in range(40)]
        await append(log, "ada", *(wakeup(act, Asking("ada", "t", "ses_1", one), now)
                                   for one in names))  # fmt: skip
        async with worker(settings, processes) as (_, timers):
            await timers.tick()
            await timers.tick()
        again = await stage.events(c.CallbackRearmed)
        assert sorted(one.callback_id for one in again) == sorted(names)
        assert {one.missed for one in again} == {720}
        assert len(await stage.events(StimulusAccepted)) == 40

    async def test_as_many_come_as_there_is_room(
        self, log: Log, stage: Stage, settings: Settings, processes: Processes
    ) -> None:
        """More than the mailbox ever takes would be put off for ever."""
        await create(log, "ada", mailboxCapacity=5)
        now = log.database.clock.now()
        first = (now - timedelta(hours=7, minutes=1)).isoformat()
        act = ScheduleWakeup(None, first, 3600, "look", "mailbox", "all")
        await append(log, "ada", wakeup(act, Asking("ada", "t", "ses_1", "wake_1"), now))
        async with worker(settings, processes) as (_, timers):
            await timers.tick()
        (again,) = await stage.events(c.CallbackRearmed)
        assert (len(again.item_ids), again.missed) == (5, 3)
        assert len(await stage.events(StimulusAccepted)) == 5
