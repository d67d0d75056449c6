"""Redis may vanish, restart or lose everything: rings are lost, nothing else is."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.broker.conftest import NAMESPACE, Workers
from tests.broker.until import until
from tests.broker.valkey import Valkey
from undivided.store.best_effort import ROOM
from undivided.store.doorbell import Doorbell


class TestWhileRedisIsDown:
    """Whoever rings is not held up."""

    async def test_ringing_neither_waits_nor_fails(
        self, valkey: Valkey, doorbell: Doorbell
    ) -> None:
        """Rings are dropped and counted; accepting a stimulus goes on."""
        valkey.kill()
        doorbell.ring(["ada"])
        await until(lambda: not doorbell.healthy)
        before = doorbell.dropped
        doorbell.ring(f"agent-{n}" for n in range(100))
        assert doorbell.dropped == before + 100

    async def test_a_frozen_redis_does_not_hold_the_loop(
        self, valkey: Valkey, doorbell: Doorbell
    ) -> None:
        """Rings that get no answer gather up to a bound and are given up soon after."""
        doorbell.ring(["first"])
        await until(lambda: valkey.client.exists(f"{NAMESPACE}:attend") == 1)
        valkey.freeze()
        doorbell.ring(f"agent-{n}" for n in range(2 * ROOM))
        ticks = 0
        while doorbell.healthy:
            await asyncio.sleep(0.005)
            ticks += 1
        assert ticks > 20
        assert doorbell.dropped == 2 * ROOM
        valkey.thaw()
        await until(lambda: doorbell.healthy)

    async def test_a_doorbell_starts_all_the_same(self, valkey: Valkey, workers: Workers) -> None:
        """Whoever starts before Redis does finds it when it comes."""
        valkey.kill()
        bell = Doorbell(valkey.url, NAMESPACE)
        await bell.start()
        worker = workers()
        await until(lambda: not bell.healthy)
        await valkey.start()
        await until(lambda: bell.healthy)
        bell.ring(["ada"])
        await until(lambda: worker.attended == ["ada"])
        await bell.close()


class TestWhenRedisIsBack:
    """Everybody finds it again without help."""

    async def test_ringing_and_answering_go_on_unaided(
        self, valkey: Valkey, doorbell: Doorbell, workers: Workers
    ) -> None:
        """Killed and started again with nothing in its memory, while everybody stays (C84)."""
        worker = workers()
        doorbell.ring(["ada"])
        await until(lambda: worker.attended == ["ada"])
        for agent in ("bob", "cyd"):
            valkey.kill()
            doorbell.ring(["lost"])
            await until(lambda: not doorbell.healthy)
            await valkey.start()
            await until(lambda: doorbell.healthy and valkey.blocked() == 1)
            doorbell.ring([agent])
            await until(lambda now=agent: worker.attended[-1] == now)  # type: ignore[misc]
        assert worker.attended == ["ada", "bob", "cyd"]
        assert doorbell.dropped >= 2

    async def test_a_ring_after_an_unnoticed_restart_is_not_lost(
        self, valkey: Valkey, doorbell: Doorbell, workers: Workers
    ) -> None:
        """A connection that died while nobody rang is replaced by the ring that finds it dead."""
        worker = workers()
        doorbell.ring(["ada"])
        await until(lambda: worker.attended == ["ada"])
        valkey.kill()
        await valkey.start()
        doorbell.ring(["bob"])
        await until(lambda: worker.attended == ["ada", "bob"])
        assert doorbell.dropped == 0

    async def test_losing_everything_changes_nothing(
        self, valkey: Valkey, doorbell: Doorbell, workers: Workers
    ) -> None:
        """After FLUSHALL the next ring is answered, also for an agent that was waiting (C83)."""
        doorbell.ring(["ada"])
        await until(lambda: valkey.client.exists(f"{NAMESPACE}:attend") == 1)
        valkey.client.flushall()
        worker = workers()
        await until(lambda: valkey.blocked() == 1)
        valkey.client.flushall()
        valkey.client.script_flush()
        doorbell.ring(["ada"])
        await until(lambda: worker.attended == ["ada"])


async def test_closing_lets_the_last_rings_out(valkey: Valkey, workers: Workers) -> None:
    """What a leaving process rang just before it left is answered by another."""
    worker = workers()
    bell = Doorbell(valkey.url, NAMESPACE)
    await bell.start()
    bell.ring(["ada"])
    await bell.close()
    await until(lambda: worker.attended == ["ada"])
    bell.ring(["too late"])
    assert bell.dropped == 1


async def test_closing_without_redis_takes_no_longer_than_a_second(tmp_path: Path) -> None:
    """A process can leave although Redis is gone."""
    bell = Doorbell(Valkey(tmp_path).url, NAMESPACE)
    await bell.start()
    bell.ring(["ada"])
    await asyncio.wait_for(bell.close(), 2)
    assert bell.dropped == 1
