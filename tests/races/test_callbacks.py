"""What agents hear of later, brought by real workers, clocks and processes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.races.hand import Hand, hired
from tests.races.staging import Stage
from tests.races.test_interrupts import send
from tests.support.lives import BY, create
from undivided.domain.callbacks import Asking, Ended, RunInBackground, background, reply
from undivided.domain.events import callbacks as c
from undivided.domain.events.items import Payload, Sender, StimulusAccepted
from undivided.domain.events.sessions import ToolCallFinished, TurnStarted
from undivided.domain.mailbox import Accept
from undivided.domain.messaging import CONVERSATION_ID
from undivided.domain.state.callback import CallbackRow
from undivided.store.commands import callbacks
from undivided.store.commands.accepting import accept_stimuli
from undivided.store.fresh import fresh_id
from undivided.store.log import Log
from undivided.store.settings import Settings
from undivided.workers.background.processes import Processes
from undivided.workers.timers import Timers

PATIENCE_S = 20.0


@pytest.fixture
def processes(tmp_path: Path) -> Processes:
    """The processes of this host."""
    return Processes(tmp_path)


@asynccontextmanager
async def worker(settings: Settings, processes: Processes) -> AsyncIterator[tuple[Hand, Timers]]:
    """A worker and its timers."""
    async with hired(settings) as hand:
        yield hand, Timers(hand.outlet, processes)


async def ticking(timers: Timers, stage: Stage, kind: type[Any]) -> Any:
    """Let a worker look until something happened; answers the event."""
    async with asyncio.timeout(PATIENCE_S):
        while not (found := await stage.events(kind)):
            await timers.tick()
            await asyncio.sleep(0.02)
    return found[0]


async def results(stage: Stage) -> list[dict[str, Any]]:
    return [json.loads(one.content) for one in await stage.events(ToolCallFinished)]


async def rows(stage: Stage) -> list[tuple[Any, ...]]:
    return await stage.ask("SELECT id, status FROM callbacks ORDER BY registered_at")


async def past_due(stage: Stage, seconds: float) -> None:
    """The wakeup was due so long ago. The event that says so is as old as it would be."""
    await stage.ask(
        "UPDATE callbacks SET wake_at = clock_timestamp() - make_interval(secs => %s)", seconds
    )


class TestWakeups:
    """A moment that comes."""

    async def test_181_192_comes_once_and_is_gone(
        self, log: Log, stage: Stage, settings: Settings, processes: Processes
    ) -> None:
        """As a fresh item, which names it; of two workers that see it one delivers."""
        await create(log, "ada")
        await send(log, "system_event", "plan")
        async with worker(settings, processes) as (hand, timers):
            hand.model.calls = [
                [
                    ("schedule_wakeup", {"at": "2020-01-01T00:00:00Z", "note": "look again"}),
                    ("schedule_wakeup", {"in_seconds": 3600}),
                    ("schedule_wakeup", {}),
                ]
            ]
            await hand.attend("ada")
            due = await callbacks.due_wakeups(log)
            outlet = hand.outlet
            fired = await asyncio.gather(*(callbacks.fire(outlet, due[0]) for _ in range(4)))
            assert sorted(fired) == [False, False, False, True]
            await timers.tick()
            await hand.attend("ada")
            assert hand.model.inputs()[-1] == "look again"
        first, later, refused = [one.content for one in await stage.events(ToolCallFinished)]
        assert json.loads(first)["status"] == "scheduled"
        assert "in_seconds" in refused
        assert [status for _, status in await rows(stage)] == ["resolved", "pending"]
        brought = (await stage.events(StimulusAccepted))[-1]
        assert brought.source_type == "system_event"
        assert brought.payload.extra == {
            "callbackId": json.loads(first)["wakeup_id"], "callbackType": "wakeup",
        }  # fmt: skip
        assert json.loads(later)["wakeup_id"] == (await rows(stage))[1][0]

    async def test_185_in_session_comes_back_to_the_conversation(
        self, log: Log, stage: Stage, settings: Settings, processes: Processes
    ) -> None:
        """As a `callback_result` with its origin."""
        await create(log, "ada")
        await send(log, "human_chat", "remind me", role="user", sender="bob")
        wish: dict[str, object] = {
            "at": "2020-01-01T00:00:00Z",
            "delivery": "in_session",
            "note": "now",
        }
        async with worker(settings, processes) as (hand, timers):
            hand.model.calls = [[("schedule_wakeup", wish)]]
            await hand.attend("ada")
            await timers.tick()
            await hand.attend("ada")
        first, second = await stage.events(TurnStarted)
        assert (second.session_id, second.scenario) == (first.session_id, "callback")
        brought = (await stage.events(StimulusAccepted))[-1]
        assert brought.payload.extra["originSessionId"] == first.session_id

    async def test_191_a_recurring_one_does_not_drift(
        self, log: Log, stage: Stage, settings: Settings, processes: Processes
    ) -> None:
        """However many slots were missed, one item comes; the next is a slot of its own."""
        await create(log, "ada")
        await send(log, "system_event", "plan")
        async with worker(settings, processes) as (hand, timers):
            wish: dict[str, object] = {"at": "2020-01-01T00:00:07Z", "recurring_seconds": 60}
            hand.model.calls = [[("schedule_wakeup", wish)]]
            await hand.attend("ada")
            await timers.tick()
            await timers.tick()
        (again,) = await stage.events(c.CallbackRearmed)
        assert again.wake_at.second == 7
        assert timedelta(0) < again.wake_at - log.database.clock.now() <= timedelta(seconds=60)
        assert again.missed > 1000
        assert [status for _, status in await rows(stage)] == ["pending"]
        assert len(await stage.events(StimulusAccepted)) == 2

    async def test_cancelled_it_never_comes(
        self, log: Log, stage: Stage, settings: Settings, processes: Processes
    ) -> None:
        """Only one's own, and only once."""
        await create(log, "ada")
        await send(log, "system_event", "plan")
        async with worker(settings, processes) as (hand, timers):
            hand.model.calls = [[("schedule_wakeup", {"in_seconds": 1})]]
            at_work = await hand.at_the_model("ada")
            hand.model.gate.set()
            await at_work
            ((wakeup_id, _),) = await rows(stage)
            hand.model.calls = [
                [("cancel_wakeup", {"wakeup_id": one}) for one in (wakeup_id, wakeup_id, "wake_x")]
            ]
            await send(log, "system_event", "never mind")
            await hand.attend("ada")
            await timers.tick()
        assert [one["status"] for one in (await results(stage))[1:]] == [
            "ok", "not_found", "not_found",
        ]  # fmt: skip
        assert await rows(stage) == [(wakeup_id, "cancelled")]
        assert await stage.events(c.CallbackResolved) == []


async def registered(
    log: Log, command: str, limit_s: float = 30, name: str = "bg_1"
) -> CallbackRow:
    """A command that an agent has asked for, as a worker that dies at once would leave it."""
    asking = Asking("ada", "trn_1", "ses_ada", name)
    event = background(RunInBackground(command, limit_s), asking, os.uname().nodename)
    async with log.locked("ada") as tx:
        appended = await tx.append([tx.addition(event)], BY)
    row: CallbackRow = appended.rows["callbacks", name]
    return row


class TestProcesses:
    """Real child processes, which outlive the worker that started them."""

    async def test_its_end_comes_into_the_conversation(
        self, log: Log, stage: Stage, settings: Settings, processes: Processes
    ) -> None:
        """With exit code, duration and tails; started by the worker's next look."""
        await create(log, "ada")
        await send(log, "human_chat", "run it", role="user", sender="bob")
        async with worker(settings, processes) as (hand, timers):
            command = "echo out; echo err >&2; exit 3"
            hand.model.calls = [[("background_exec", {"command": command})]]
            await hand.attend("ada")
            done = await ticking(timers, stage, c.CallbackResolved)
            await hand.attend("ada")
            told = hand.model.inputs()[-1]
        assert (done.how, done.exit_code, done.late) == ("completed", 3, False)
        assert all(part in told for part in ("failed", "Exit code: 3", "err", "out", command))
        first, second = await stage.events(TurnStarted)
        assert (second.session_id, second.scenario) == (first.session_id, "callback")
        assert (await results(stage))[0]["status"] == "running"

    async def test_it_outlives_the_worker_that_started_it(
        self, log: Log, stage: Stage, settings: Settings, processes: Processes, tmp_path: Path
    ) -> None:
        """A worker that is killed leaves it running; any other of the host hears its end."""
        await create(log, "ada")
        gate = tmp_path / "gate"
        os.mkfifo(gate)
        row = await registered(log, f"read line < {gate}; echo it says $line")
        script = (
            "import asyncio, sys, os; from datetime import UTC, datetime; from pathlib import Path;"
            "import msgspec;"
            "from undivided.domain.state.callback import CallbackRow;"
            "from undivided.workers.background.processes import Processes;"
            "row = msgspec.json.decode(sys.argv[2], type=CallbackRow);"
            "asyncio.run(Processes(Path(sys.argv[1])).start(row, datetime.now(UTC)));"
            "os.kill(os.getpid(), 9)"
        )
        import msgspec

        dying = await asyncio.create_subprocess_exec(
            sys.executable, "-c", script, str(tmp_path), msgspec.json.encode(row).decode()
        )
        assert await dying.wait() == -signal.SIGKILL
        assert processes.look(row, log.database.clock.now()) == "running"
        async with worker(settings, processes) as (_, timers):
            await timers.tick()
            assert await stage.events(c.CallbackResolved) == []
            await asyncio.to_thread(gate.write_text, "go\n")
            done = await ticking(timers, stage, c.CallbackResolved)
        assert (done.how, done.exit_code) == ("completed", 0)
        assert "it says go" in (await stage.events(StimulusAccepted))[0].payload.content

    async def test_is_started_once_whoever_tries(
        self, log: Log, processes: Processes, tmp_path: Path
    ) -> None:
        """Two workers see it at the same moment."""
        await create(log, "ada")
        row = await registered(log, f"echo x >> {tmp_path}/witness")
        await asyncio.gather(*(processes.start(row, log.database.clock.now()) for _ in range(4)))
        ended = await over(processes, log, row)
        assert ended.exit_code == 0
        assert (tmp_path / "witness").read_text() == "x\n"

    async def test_one_that_is_killed_has_vanished(
        self, log: Log, stage: Stage, settings: Settings, processes: Processes, tmp_path: Path
    ) -> None:
        """Nobody knows how it ended, and its agent is told so; once."""
        await create(log, "ada")
        gate = tmp_path / "gate"
        os.mkfifo(gate)
        row = await registered(log, f"read line < {gate}")
        await processes.start(row, log.database.clock.now())
        async with asyncio.timeout(PATIENCE_S):
            while not list((tmp_path / "runs").glob("*/pid")):
                await asyncio.sleep(0.01)
        (trace,) = (tmp_path / "runs").glob("*/pid")
        os.kill(json.loads(trace.read_text())["pid"], signal.SIGKILL)
        async with worker(settings, processes) as (_, timers):
            done = await ticking(timers, stage, c.CallbackResolved)
            await timers.tick()
        assert (done.how, done.exit_code) == ("vanished", None)
        assert len(await stage.events(StimulusAccepted)) == 1
        await asyncio.to_thread(gate.write_text, "let go\n")

    async def test_a_later_process_of_the_same_id_is_not_it(
        self, log: Log, processes: Processes, tmp_path: Path
    ) -> None:
        """This very process has the pid, but began at another time."""
        await create(log, "ada")
        row = await registered(log, "true")
        await processes.start(row, log.database.clock.now())
        await over(processes, log, row)
        (folder,) = (tmp_path / "runs").iterdir()
        (folder / "result").unlink()
        pid = json.loads((folder / "pid").read_text())
        (folder / "pid").write_text(json.dumps({**pid, "pid": os.getpid()}))
        assert processes.look(row, log.database.clock.now()) == Ended(None)
        processes.end(row)  # which must not end us

    async def test_300_mb_and_nul_stay_bounded(self, log: Log, processes: Processes) -> None:
        """Only the tail is kept."""
        await create(log, "ada")
        row = await registered(
            log, "head -c 300000000 /dev/zero; printf 'a\\0b'; head -c 300000 /dev/zero >&2"
        )
        await processes.start(row, log.database.clock.now())
        ended = await over(processes, log, row)
        assert ended.exit_code == 0
        assert len(ended.stdout) == len(ended.stderr) == 8192
        assert ended.stdout.endswith("\0a\0b")

    async def test_beyond_its_limit_it_is_ended_with_its_children(
        self, log: Log, processes: Processes, tmp_path: Path
    ) -> None:
        """Which did not outlive it."""
        await create(log, "ada")
        command = f"(trap '' TERM; sleep 600 & echo $! > {tmp_path}/child; wait) & wait"
        row = await registered(log, command, limit_s=0.3)
        await processes.start(row, log.database.clock.now())
        ended = await over(processes, log, row)
        assert ended.timed_out
        assert ended.exit_code == 143
        child = int((tmp_path / "child").read_text())
        assert not Path(f"/proc/{child}").exists() or "Z" in Path(f"/proc/{child}/stat").read_text()

    async def test_sees_nothing_of_our_settings(
        self, log: Log, processes: Processes, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Which hold secrets."""
        monkeypatch.setenv("DATABASE_URL", "postgresql://secret")
        await create(log, "ada")
        row = await registered(log, "env")
        await processes.start(row, log.database.clock.now())
        assert "secret" not in (await over(processes, log, row)).stdout


async def over(processes: Processes, log: Log, row: CallbackRow) -> Ended:
    """How a process ends."""
    async with asyncio.timeout(PATIENCE_S):
        while not isinstance(standing := processes.look(row, log.database.clock.now()), Ended):
            await asyncio.sleep(0.01)
    return standing


class TestReplies:
    """Another agent's answer, heard in the conversation that asked."""

    async def test_188_189_it_is_answered_where_it_was_asked(
        self, log: Log, stage: Stage, settings: Settings, processes: Processes
    ) -> None:
        """Its callback is gone, and a second reply is a message like any other."""
        await create(log, "ada", coalesceWindowMs=0)
        asked = reply("c1", "reply of bob", Asking("ada", "t", "ses_ada", "a2a_1"))
        assert (asked.delivery, asked.timeout_s, asked.correlation_id) == ("in_session", 1800, "c1")
        await send(log, "human_chat", "ask bob", role="user", sender="eve")
        async with worker(settings, processes) as (hand, _):
            await hand.attend("ada")
            async with log.locked("ada") as tx:
                await tx.append([tx.addition(asked)], BY)
            for text in ("[conversation:c1] it is done", "[conversation:c1] and more"):
                await accept(hand, text)
                await hand.attend("ada")
        began = await stage.events(TurnStarted)
        assert [one.session_id == "ses_ada" for one in began] == [True, True, False]
        (done,) = await stage.events(c.CallbackResolved)
        assert (done.callback_id, done.how) == ("a2a_1", "completed")
        assert done.item_ids == began[1].item_ids

    async def test_180_another_agents_is_not_touched(
        self, log: Log, stage: Stage, settings: Settings, processes: Processes
    ) -> None:
        """The same name, another agent's conversation."""
        for agent_id in ("ada", "bob"):
            await create(log, agent_id)
            event = reply("c1", "", Asking(agent_id, "t", "ses_x", f"a2a_{agent_id}"))
            async with log.locked(agent_id) as tx:
                await tx.append([tx.addition(event)], BY)
        async with worker(settings, processes) as (hand, _):
            await accept(hand, "[conversation:c1] for ada")
            await accept(hand, "[conversation:c2] unknown")
        assert dict(await rows(stage)) == {"a2a_ada": "resolved", "a2a_bob": "pending"}


async def accept(hand: Hand, text: str) -> None:
    """A message from bob reaches ada, as a real producer would send it."""
    command = Accept(
        item_id=fresh_id("mbx"), source_type="a2a_message",
        payload=Payload(text, extra={"channelKey": "dm:a2a:ada:bob"}),
        sender=Sender("bob", None, "agent"),
    )  # fmt: skip
    assert CONVERSATION_ID not in command.payload.extra
    await accept_stimuli(hand.outlet, "ada", [command], BY)
