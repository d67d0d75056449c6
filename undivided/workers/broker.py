"""Dramatiq, made to wake at once, to idle for free and to outlive Redis.

Dramatiq's own Redis consumer polls: quick polls burn a quarter of a core, slow ones wait 190 ms.
This one blocks until somebody rings. It claims one ring at a time, and only when a thread is free
for it, so a slow turn holds no other agent's doorbell. A claimed ring is gone from Redis: it was a
hint, what it announced lies in Postgres, and attempts are counted there. So there is nothing to
acknowledge, no heartbeat to miss, and a turn that kills its worker comes back only when the sweep
says so. Delays, retries, time limits and all middleware that could throw an exception into a
thread are left out. Redis being away is no error but a time without rings.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

import dramatiq
from dramatiq.broker import Broker, Consumer, MessageProxy
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from undivided.store.doorbell import ACTOR, QUEUE, ring_command, rings_key

LISTEN_S = 1
ANSWER_WITHIN_S = 2
LOOK_AGAIN_S = 0.25
THREAD_WAKES_EVERY_MS = 500

log = logging.getLogger(__name__)


def make_broker(redis_url: str, namespace: str, threads: int = 1) -> DoorbellBroker:
    """A broker that hands out at most one ring per thread; Redis need not be there yet."""
    client = Redis.from_url(
        redis_url,
        socket_timeout=LISTEN_S + ANSWER_WITHIN_S,
        socket_connect_timeout=ANSWER_WITHIN_S,
        retry=Retry(NoBackoff(), 0),
    )
    return DoorbellBroker(client, namespace, threads)


class DoorbellBroker(Broker):
    """What Dramatiq's worker asks of a broker, answered from the rings of the doorbell.

    `seats`: one per thread, taken while its ring is attended to. `draining`: once set, nothing
    more is claimed.
    """

    def __init__(self, client: Redis, namespace: str, threads: int) -> None:
        super().__init__(middleware=[])
        self.client, self.namespace = client, namespace
        self.seats = threading.BoundedSemaphore(threads)
        self.draining = threading.Event()

    def declare_queue(self, queue_name: str) -> None:
        """Declare a queue, and no delay queue beside it: due times live in Postgres."""
        if queue_name not in self.queues:
            self.emit_before("declare_queue", queue_name)
            self.queues[queue_name] = None
            self.emit_after("declare_queue", queue_name)

    def enqueue(
        self, message: dramatiq.Message[Any], *, delay: int | None = None
    ) -> dramatiq.Message[Any]:
        """Ring for the agent that the message names; raises what Redis raises."""
        if delay is not None:
            raise ValueError("rings cannot be delayed; due times live in Postgres")
        self.ring(message.args)
        return message

    def ring(self, agent_ids: Iterable[str]) -> None:
        """Ring from a thread, and wait until Redis has taken it."""
        self.client.execute_command(  # type: ignore[no-untyped-call]
            *ring_command(self.namespace, agent_ids)
        )

    def consume(self, queue_name: str, prefetch: int = 1, timeout: int = 5000) -> Consumer:  # noqa: ARG002 -- Dramatiq's signature
        """Listen for rings; how many may be claimed is for the seats to say, not for `prefetch`."""
        return Listener(self)


class Listener(Consumer):
    """Claims one ring at a time for a thread that is free, and blocks while nobody rings."""

    def __init__(self, broker: DoorbellBroker) -> None:
        self._broker = broker
        self._rings = rings_key(broker.namespace)
        self._lost = False

    def __next__(self) -> MessageProxy | None:
        """The next ring, or nothing yet."""
        if self._broker.draining.is_set():
            time.sleep(LOOK_AGAIN_S)
            return None
        if not self._broker.seats.acquire(timeout=LISTEN_S):
            return None
        message = self._claim()
        if message is None:
            self._broker.seats.release()
        return message

    def ack(self, message: MessageProxy) -> None:  # noqa: ARG002 -- Dramatiq's signature
        """Free the seat; Redis forgot the ring when it was claimed."""
        self._broker.seats.release()

    def nack(self, message: MessageProxy) -> None:
        """Free the seat all the same: whether to try again is not for the broker to say."""
        self.ack(message)

    def requeue(self, messages: Iterable[MessageProxy]) -> None:
        """Ring again for what was claimed but never begun."""
        agent_ids = [str(message.args[0]) for message in messages]
        if agent_ids:
            self._unless_lost(lambda: self._broker.ring(agent_ids))

    def close(self) -> None:
        """Hang up."""
        self._broker.client.close()

    def _claim(self) -> MessageProxy | None:
        rung = self._unless_lost(lambda: self._broker.client.bzpopmin(self._rings, LISTEN_S))
        if not rung:
            return None
        message = _attend_message(bytes(rung[1]).decode())
        if self._broker.draining.is_set():  # it was rung while we were still on the line
            self.requeue([message])
            return None
        return message

    def _unless_lost(self, command: Callable[[], Any]) -> Any:
        try:
            answer = command()
        except (RedisError, OSError) as lost:
            if not self._lost:
                log.warning("redis lost, only the sweep finds work until it is back: %s", lost)
            self._lost = True
            self._broker.draining.wait(LOOK_AGAIN_S)
            return None
        if self._lost:
            log.warning("redis is back, listening for the doorbell again")
        self._lost = False
        return answer


def _attend_message(agent_id: str) -> MessageProxy:
    return MessageProxy(
        dramatiq.Message[None](
            queue_name=QUEUE,
            actor_name=ACTOR,
            args=(agent_id,),
            kwargs={},
            options={},
            message_id=agent_id,
        )
    )


class Attendance:
    """The bridge from Dramatiq's threads to the event loop: each ring becomes one `attend` there.

    A thread waits for as long as its `attend` runs, so `threads` is how many agents this process
    attends to at once.
    """

    def __init__(self, redis_url: str, namespace: str) -> None:
        self._redis_url, self._namespace = redis_url, namespace
        self._broker: DoorbellBroker | None = None
        self._worker: dramatiq.Worker | None = None

    def start(
        self,
        loop: asyncio.AbstractEventLoop,
        attend: Callable[[str], Coroutine[Any, Any, None]],
        threads: int,
    ) -> None:
        """Begin to claim rings and have `loop` attend to them."""
        broker = make_broker(self._redis_url, self._namespace, threads)

        @dramatiq.actor(actor_name=ACTOR, queue_name=QUEUE, broker=broker)
        def answer(agent_id: str) -> None:
            asyncio.run_coroutine_threadsafe(attend(agent_id), loop).result()

        self._broker = broker
        self._worker = dramatiq.Worker(
            broker, worker_threads=threads, worker_timeout=THREAD_WAKES_EVERY_MS
        )
        self._worker.start()

    def stop(self) -> None:
        """Claim nothing more from now on; calls under way go on.

        A ring claimed in this very moment may still begin; `attend` must be able to refuse it.
        """
        if self._broker is not None:
            self._broker.draining.set()

    async def finish(self, within_s: float) -> None:
        """Stop, wait for the calls under way, ring again for what never began, and let go."""
        self.stop()
        if self._worker is not None:
            await asyncio.to_thread(self._worker.stop, int(within_s * 1000))
