"""Hints: heard at once when all is well, missed with a gap when it is not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.broker.conftest import NAMESPACE
from tests.broker.until import until
from tests.broker.valkey import Valkey
from undivided.store.hints import CANCEL, TAIL, Gap, Heard, Hints, Subscription, deltas_of

SOON_S = 10.0


@pytest.fixture
async def elsewhere(valkey: Valkey) -> AsyncIterator[Hints]:
    """The hints of another process."""
    other = Hints(valkey.url, NAMESPACE)
    await other.start()
    yield other
    await other.close()


async def take(subscription: Subscription, number: int) -> list[Heard | None]:
    async with asyncio.timeout(SOON_S):
        return [await subscription.next() for _ in range(number)]


def subscriber_connections(valkey: Valkey) -> int:
    return len(valkey.client.client_list(_type="pubsub"))


class TestListening:
    """What is said in one process is heard in the others."""

    async def test_hears_what_another_process_says(self, hints: Hints, elsewhere: Hints) -> None:
        """From the moment the block begins, nothing is missed."""
        await until(lambda: hints.healthy)
        async with hints.subscribe(TAIL) as tail:
            elsewhere.publish(TAIL, b"agent:ada")
            assert await tail.next(SOON_S) == b"agent:ada"

    async def test_hears_every_piece_of_a_reply_in_order(
        self, hints: Hints, elsewhere: Hints
    ) -> None:
        """Two equal pieces are two pieces; other replies are not heard."""
        await until(lambda: hints.healthy)
        pieces = [b"ha", b"ha", b" ", b"ha"] * 50
        async with hints.subscribe(deltas_of("t1")) as deltas:
            for piece in pieces:
                elsewhere.publish(deltas_of("t1"), piece)
                elsewhere.publish(deltas_of("t2"), b"other")
            assert await take(deltas, len(pieces)) == pieces
            assert await deltas.next(0.0) is None

    async def test_hears_a_commit_that_was_said_many_times_in_a_row_once(
        self, hints: Hints, elsewhere: Hints
    ) -> None:
        """What says the same is said once per round trip."""
        await until(lambda: hints.healthy)
        async with hints.subscribe(TAIL) as tail:
            for _ in range(50):
                elsewhere.publish(TAIL, b"agent:ada")
            elsewhere.publish(TAIL, b"agent:bob")
            assert await take(tail, 2) == [b"agent:ada", b"agent:bob"]

    async def test_hears_only_what_it_asked_for(self, hints: Hints, elsewhere: Hints) -> None:
        """A listener that waits for one turn is not woken for the others."""
        await until(lambda: hints.healthy)
        async with hints.subscribe(CANCEL, only=b"t2") as mine:
            elsewhere.publish(CANCEL, b"t1")
            elsewhere.publish(CANCEL, b"t2")
            async for heard in mine:
                assert heard == b"t2"
                break

    async def test_shares_one_connection_and_leaves_nothing_behind(
        self, valkey: Valkey, hints: Hints
    ) -> None:
        """A process listens through one connection, whatever it listens to."""
        await until(lambda: hints.healthy)
        async with hints.subscribe(TAIL), hints.subscribe(TAIL), hints.subscribe(CANCEL):
            assert subscriber_connections(valkey) == 1
            assert len(valkey.client.pubsub_channels()) == 2
        await until(lambda: valkey.client.pubsub_channels() == [])
        async with hints.subscribe(TAIL) as again:
            hints.publish(TAIL, b"agent:ada")
            assert await again.next(SOON_S) == b"agent:ada"

    async def test_is_bounded(self, hints: Hints, elsewhere: Hints) -> None:
        """A slow listener loses the oldest and is told so first."""
        await until(lambda: hints.healthy)
        topic = deltas_of("t1")
        async with hints.subscribe(topic, room=3) as slow, hints.subscribe(topic) as quick:
            for piece in (b"1", b"2", b"3", b"4", b"5"):
                elsewhere.publish(topic, piece)
            await take(quick, 5)
            assert await take(slow, 4) == [Gap(), b"3", b"4", b"5"]


class TestWhileRedisIsDown:
    """Hints are lost, and whoever listens knows it."""

    async def test_listening_and_saying_neither_wait_nor_fail(
        self, valkey: Valkey, hints: Hints
    ) -> None:
        """Whoever listens lives on polls and can see that it has to."""
        await until(lambda: hints.healthy)
        valkey.kill()
        await until(lambda: not hints.healthy)
        hints.publish(TAIL, b"agent:ada")
        async with hints.subscribe(TAIL) as tail:
            assert await tail.next(0.05) is None
        await until(lambda: hints.dropped == 1)

    async def test_everybody_hears_a_gap_when_it_is_back(
        self, valkey: Valkey, hints: Hints, elsewhere: Hints
    ) -> None:
        """Also who began to listen while it was away; from then on hints are heard again."""
        await until(lambda: hints.healthy)
        async with hints.subscribe(TAIL) as before:
            for _ in range(2):
                valkey.kill()
                await until(lambda: not hints.healthy)
                async with hints.subscribe(CANCEL) as since:
                    await valkey.start()
                    assert await before.next(SOON_S) == Gap()
                    assert await since.next(SOON_S) == Gap()
                    await until(lambda: elsewhere.healthy)
                    elsewhere.publish(TAIL, b"agent:ada")
                    elsewhere.publish(CANCEL, b"t1")
                    assert await before.next(SOON_S) == b"agent:ada"
                    assert await since.next(SOON_S) == b"t1"

    async def test_starts_all_the_same(self, valkey: Valkey) -> None:
        """Whoever starts before Redis does finds it when it comes."""
        valkey.kill()
        hints = Hints(valkey.url, NAMESPACE)
        await hints.start()
        async with hints.subscribe(TAIL) as tail:
            await valkey.start()
            assert await tail.next(SOON_S) == Gap()
            hints.publish(TAIL, b"agent:ada")
            assert await tail.next(SOON_S) == b"agent:ada"
        await hints.close()
