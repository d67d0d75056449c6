"""What a ring brings about while Redis is well."""

from __future__ import annotations

import asyncio
import threading

from tests.broker.conftest import NAMESPACE, Workers
from tests.broker.until import until
from tests.broker.valkey import Valkey
from undivided.store.doorbell import Doorbell, rings_key
from undivided.workers.broker import LISTEN_S, make_broker

RINGS = rings_key(NAMESPACE)


def waiting(valkey: Valkey) -> list[str]:
    return [str(agent) for agent in valkey.client.zrange(RINGS, 0, -1)]


class TestARing:
    """A ring wakes one worker for one agent."""

    async def test_wakes_exactly_one_worker(
        self, valkey: Valkey, doorbell: Doorbell, workers: Workers
    ) -> None:
        """However many processes listen, a ring is answered once."""
        one, other = workers(), workers()
        await until(lambda: valkey.blocked() == 2)
        agents = [f"agent-{n}" for n in range(100)]
        doorbell.ring(agents)
        await until(lambda: len(one.attended) + len(other.attended) >= len(agents))
        assert sorted(one.attended + other.attended) == sorted(agents)
        assert waiting(valkey) == []

    async def test_rung_again_before_it_was_sent_is_one_ring(
        self, valkey: Valkey, doorbell: Doorbell, workers: Workers
    ) -> None:
        """Rings of one loop tick gather: each agent once, all in one command."""
        worker = workers(threads=1)
        await until(lambda: valkey.blocked() == 1)
        for _ in range(50):
            doorbell.ring(["ada", "bob"])
        await until(lambda: len(worker.attended) == 2)
        assert worker.attended == ["ada", "bob"]
        assert valkey.calls()["zadd"] == 1

    async def test_rung_again_before_it_was_answered_waits_once(
        self, valkey: Valkey, doorbell: Doorbell
    ) -> None:
        """With nobody listening, the rings grow to the number of agents and no further."""
        for number in range(1, 6):
            doorbell.ring(["ada", "bob"])
            await until(lambda sent=number: valkey.calls().get("zadd", 0) == sent)  # type: ignore[misc]
        assert waiting(valkey) == ["ada", "bob"]
        assert valkey.client.keys(f"{NAMESPACE}:*") == [RINGS]

    async def test_rung_again_while_it_is_answered_is_answered_again(
        self, doorbell: Doorbell, workers: Workers
    ) -> None:
        """What arrived after the worker looked must be looked at: no ring is swallowed."""
        looked, go_on = asyncio.Event(), asyncio.Event()

        async def look(_: str) -> None:
            looked.set()
            await go_on.wait()

        worker = workers(threads=1, then=look)
        doorbell.ring(["ada"])
        await looked.wait()
        doorbell.ring(["ada"])
        go_on.set()
        await until(lambda: worker.attended == ["ada", "ada"])

    async def test_the_oldest_is_answered_first(
        self, valkey: Valkey, doorbell: Doorbell, workers: Workers
    ) -> None:
        """Rings that found nobody are answered in the order in which they came."""
        agents = ["zoe", "mia", "ada"]
        for number, agent in enumerate(agents, start=1):
            doorbell.ring([agent])
            await until(lambda sent=number: len(waiting(valkey)) == sent)  # type: ignore[misc]
        worker = workers(threads=1)
        await until(lambda: len(worker.attended) == 3)
        assert worker.attended == agents

    async def test_by_dramatiqs_own_call_wakes_too(self, valkey: Valkey, workers: Workers) -> None:
        """`broker.enqueue` is a ring like any other."""
        worker = workers()
        await until(lambda: valkey.blocked() == 1)
        broker = make_broker(valkey.url, NAMESPACE)
        broker.ring(["ada"])
        await until(lambda: worker.attended == ["ada"])
        broker.client.close()


class TestAnIdleWorker:
    """A worker that nobody rings for costs next to nothing."""

    async def test_asks_redis_once_a_second(self, valkey: Valkey, workers: Workers) -> None:
        """It blocks; nothing polls, no delay queue, no heartbeat."""
        workers(threads=8)
        workers(threads=8)
        await until(lambda: valkey.blocked() == 2)
        before = valkey.calls()
        await until(lambda: valkey.calls().get("bzpopmin", 0) >= 6)
        grown = {name for name, calls in valkey.calls().items() if calls > before.get(name, 0)}
        assert grown == {"bzpopmin", "info"}

    async def test_is_woken_and_does_not_look_by_itself(
        self, valkey: Valkey, doorbell: Doorbell, workers: Workers
    ) -> None:
        """A ring ends the blocking read that was waiting when it came."""
        worker = workers()
        await until(lambda: valkey.blocked() == 1)
        reads = valkey.calls().get("bzpopmin", 0)
        doorbell.ring(["ada"])
        await until(lambda: worker.attended == ["ada"], within_s=LISTEN_S)
        assert valkey.calls()["bzpopmin"] <= reads + 2


class TestASlowAgent:
    """A turn may take its time; it takes nobody else's."""

    async def test_holds_no_other_agents_ring(
        self, valkey: Valkey, doorbell: Doorbell, workers: Workers
    ) -> None:
        """A process without a free thread claims nothing, so another can (C85)."""
        go_on = asyncio.Event()

        async def dawdle(_: str) -> None:
            await go_on.wait()

        slow = workers(threads=2, then=dawdle)
        doorbell.ring(["ada", "bob"])
        await until(lambda: len(slow.attended) == 2)
        doorbell.ring(["cyd", "dot"])
        await until(lambda: waiting(valkey) == ["cyd", "dot"])
        quick = workers()
        await until(lambda: quick.attended == ["cyd", "dot"])
        assert len(slow.attended) == 2
        go_on.set()

    async def test_leaves_the_other_threads_free(
        self, doorbell: Doorbell, workers: Workers
    ) -> None:
        """One agent that dawdles takes one thread and not the process."""
        go_on = asyncio.Event()

        async def dawdle(agent_id: str) -> None:
            if agent_id == "slow":
                await go_on.wait()

        worker = workers(threads=2, then=dawdle)
        doorbell.ring(["slow"])
        await until(lambda: worker.attended == ["slow"])
        doorbell.ring([f"agent-{n}" for n in range(20)])
        await until(lambda: len(worker.attended) == 21)
        go_on.set()


class TestAnAttendThatFails:
    """Whatever happens in a turn, the broker is done with its ring."""

    async def test_is_not_tried_again_by_the_broker(
        self, valkey: Valkey, doorbell: Doorbell, workers: Workers
    ) -> None:
        """Attempts are counted in our log; a poisonous ring does not loop (C77)."""

        async def fail(agent_id: str) -> None:
            if agent_id == "poison":
                raise ValueError("poison")

        worker = workers(threads=1, then=fail)
        doorbell.ring(["poison"])
        await until(lambda: worker.attended == ["poison"])
        doorbell.ring(["ada"])
        await until(lambda: "ada" in worker.attended)
        assert worker.attended == ["poison", "ada"]
        assert valkey.client.keys("*") == []

    async def test_costs_no_thread_and_no_seat(self, doorbell: Doorbell, workers: Workers) -> None:
        """A thousand time-outs later as many threads run, and all of them still attend (C80)."""

        async def time_out(agent_id: str) -> None:
            await asyncio.sleep(hash(agent_id) % 3 / 1000)
            raise TimeoutError

        worker = workers(threads=4, then=time_out)
        doorbell.ring(["first"])
        await until(lambda: len(worker.attended) == 1)
        threads = threading.active_count()
        doorbell.ring([f"agent-{n}" for n in range(1000)])
        await until(lambda: len(worker.attended) == 1001, within_s=30)
        assert threading.active_count() == threads
        doorbell.ring(["last"])
        await until(lambda: worker.attended[-1] == "last")


class TestStopping:
    """A process that leaves claims nothing more and drops nothing."""

    async def test_claims_nothing_more(
        self, valkey: Valkey, doorbell: Doorbell, workers: Workers
    ) -> None:
        """A ring that comes to a process that is leaving goes to one that stays."""
        leaving = workers()
        await until(lambda: valkey.blocked() == 1)
        leaving.attendance.stop()
        staying = workers()
        agents = [f"agent-{n}" for n in range(10)]
        doorbell.ring(agents)
        await until(lambda: len(staying.attended) == len(agents))
        assert leaving.attended == []

    async def test_waits_for_the_call_under_way(self, doorbell: Doorbell, workers: Workers) -> None:
        """Stopping interrupts nothing; finishing waits until the call has come to its end."""
        go_on, over = asyncio.Event(), []

        async def work(agent_id: str) -> None:
            await go_on.wait()
            over.append(agent_id)

        worker = workers(then=work)
        doorbell.ring(["ada"])
        await until(lambda: worker.attended == ["ada"])
        worker.attendance.stop()
        finishing = asyncio.create_task(worker.attendance.finish(10.0))
        go_on.set()
        await finishing
        assert over == ["ada"]
