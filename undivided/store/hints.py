"""Hints between processes: something was committed, a reply goes on, a person asked to stop.

A hint tells its hearer to look now and not at the next poll. It may be lost, so whoever listens
also polls, more rarely; a `Gap` says that something may have been missed and that the time to look
is now. Each process has one connection for all that it hears and one for all that it says.

| topic | payload |
|---|---|
| `tail` | id of the agent, or name of the stream, to which something was committed |
| `deltas:<turn id>` | JSON `{"text": ...}`, the next piece of a reply that is being written |
| `cancel` | id of the turn that a person asked to stop |
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from itertools import count

from redis.exceptions import ConnectionError as Disconnected
from redis.exceptions import RedisError

from undivided.store.best_effort import BestEffort, Command, bare_connection
from undivided.store.subscription import ROOM, Gap, Heard, Subscription

__all__ = ["CANCEL", "TAIL", "Gap", "Heard", "Hints", "Subscription", "deltas_of"]

TAIL = "tail"
CANCEL = "cancel"

SUBSCRIBED_WITHIN_S = 0.25
CONNECTED_WITHIN_S = 1.0
QUIET_S = 5.0
GATHER_S = 0.002
"""What a busy process has to say within this time leaves together."""
PAUSE_S, LONGEST_PAUSE_S = 0.05, 0.5
# Said twice these say no more than once; in any other topic that is two different hints.
IDEMPOTENT = frozenset({TAIL, CANCEL})

log = logging.getLogger(__name__)


def deltas_of(turn_id: str) -> str:
    """The topic on which the reply of this turn is heard while it is written."""
    return f"deltas:{turn_id}"


class _Audience:
    """Who listens to one topic, and whether Redis has confirmed that we do."""

    def __init__(self) -> None:
        self.subscriptions: set[Subscription] = set()
        self.confirmed = asyncio.Event()


class Hints:
    """Publishes and hears hints for one process.

    `healthy` says whether hints are being heard; while it is false, listeners live on their polls.
    """

    def __init__(self, redis_url: str, namespace: str) -> None:
        self.healthy = False
        self._prefix = f"{namespace}:hint:"
        self._saying = BestEffort[tuple[str, bytes, int]](
            redis_url, self._publish_commands, GATHER_S
        )
        self._serials = count(1)
        self._connection = bare_connection(redis_url)
        self._audiences: dict[str, _Audience] = {}
        self._asked: set[str] = set()
        self._task: asyncio.Task[None] | None = None

    @property
    def dropped(self) -> int:
        """How many published hints never reached Redis."""
        return self._saying.dropped

    async def start(self) -> None:
        """Begin to publish and to hear; Redis need not be there."""
        await self._saying.start()
        self._task = asyncio.create_task(self._listen_for_ever())

    async def close(self) -> None:
        """Say what is left, for a second at most, and hang up."""
        await self._saying.close()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None
        self.healthy = False
        await self._connection.disconnect(nowait=True)

    def publish(self, topic: str, payload: bytes) -> None:
        """Say it to whoever listens anywhere; never waits and never raises."""
        serial = 0 if topic in IDEMPOTENT else next(self._serials)
        self._saying.offer((topic, payload, serial))

    @asynccontextmanager
    async def subscribe(
        self, topic: str, only: bytes | None = None, room: int = ROOM
    ) -> AsyncIterator[Subscription]:
        """Listen to a topic, or to one payload of it, until the block ends.

        Nothing published after this returns is missed without a gap; while Redis is away it
        returns at once, and the gap comes when it is back.
        """
        subscription = Subscription(only, room)
        audience = self._audiences.setdefault(topic, _Audience())
        audience.subscriptions.add(subscription)
        try:
            await self._agree_about(topic)
            if self.healthy:
                with suppress(TimeoutError):
                    await asyncio.wait_for(audience.confirmed.wait(), SUBSCRIBED_WITHIN_S)
            subscription.forgive()
            yield subscription
        finally:
            audience.subscriptions.discard(subscription)
            if not audience.subscriptions:
                self._audiences.pop(topic, None)
            await self._agree_about(topic)

    async def _agree_about(self, topic: str) -> None:
        """Have Redis send this topic if and only if somebody listens to it."""
        wanted = topic in self._audiences
        if not self.healthy or wanted == (topic in self._asked):
            return
        (self._asked.add if wanted else self._asked.discard)(topic)
        with suppress(RedisError, OSError):  # the listening task will see it too, and reconnect
            await self._say_now("SUBSCRIBE" if wanted else "UNSUBSCRIBE", [topic])

    async def _say_now(self, command: str, topics: Iterable[str]) -> None:
        await self._connection.send_command(command, *(self._prefix + topic for topic in topics))

    def _publish_commands(self, hints: list[tuple[str, bytes, int]]) -> list[Command]:
        return [("PUBLISH", self._prefix + topic, payload) for topic, payload, _ in hints]

    async def _listen_for_ever(self) -> None:
        pause_s, lost_before = PAUSE_S, False
        while True:
            try:
                await self._connect()
                if lost_before:
                    log.warning("redis is back, hints are heard again")
                pause_s, lost_before = PAUSE_S, False
                await self._hear_until_lost()
            except (RedisError, OSError, TimeoutError) as lost:
                if not lost_before:
                    log.warning("redis lost, hints are not heard until it is back: %s", lost)
                lost_before = True
            except Exception:
                log.exception("hints cannot be heard; trying again on a new connection")
            self._forget_connection()
            await self._connection.disconnect(nowait=True)
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    async def _connect(self) -> None:
        async with asyncio.timeout(CONNECTED_WITHIN_S):
            await self._connection.connect()  # type: ignore[no-untyped-call]
            self._asked = set(self._audiences)
            self.healthy = True
            if self._asked:
                await self._say_now("SUBSCRIBE", self._asked)

    def _forget_connection(self) -> None:
        self.healthy = False
        for audience in self._audiences.values():
            audience.confirmed.clear()

    async def _hear_until_lost(self) -> None:
        pinged = False
        while True:
            heard = await self._connection.read_response(timeout=QUIET_S, disconnect_on_error=False)
            if heard is None and pinged:
                raise Disconnected("no answer")
            pinged = heard is None
            if pinged:
                await self._connection.send_command("PING")
            elif isinstance(heard, list) and len(heard) == 3:
                self._pass_on(heard[0], heard[1], heard[2])

    def _pass_on(self, kind: bytes, channel: bytes, payload: bytes) -> None:
        audience = self._audiences.get(channel.decode().removeprefix(self._prefix))
        if audience is None:
            return
        for subscription in audience.subscriptions:
            if kind == b"message":
                subscription.hear(payload)
            elif kind == b"subscribe":
                subscription.miss()
        if kind == b"subscribe":
            audience.confirmed.set()
