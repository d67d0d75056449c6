"""The doorbell: a hint to some worker that an agent may have something to do.

It is never the work itself: Postgres holds that, and the sweep rings again for whoever was missed.
This is the only module that rings, and the one that knows how a ring lies in Redis: as a member of
the sorted set `<namespace>:attend`, named after the agent and scored with the time it was rung.

A sorted set, because popping from one with a blocking read (`BZPOPMIN`) is at once the wake-up,
the hand-over to exactly one worker, oldest first, and the end of the ring. So a ring is one
command and an answer is one command; a second ring before the first is answered changes nothing,
whatever process it comes from; one that comes later is a new ring and is never swallowed; and
with nobody listening the set grows to the number of agents and no further.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from undivided.store.best_effort import BestEffort, Command

QUEUE = "attend"
ACTOR = "attend"


def rings_key(namespace: str) -> str:
    """The key of the sorted set in which the rings of this installation wait."""
    return f"{namespace}:{QUEUE}"


def ring_command(namespace: str, agent_ids: Iterable[str]) -> Command:
    """The Redis command that rings for these agents.

    Scores only order; where two hosts disagree about the time, the earlier one holds (`LT`).
    """
    now_ms = int(time.time() * 1000)
    command: list[str | bytes | int] = ["ZADD", rings_key(namespace), "LT"]
    for agent_id in agent_ids:
        command += (now_ms, agent_id)
    return command


class Doorbell:
    """Rings for agents from one event loop, best effort.

    Rings of one loop tick leave in one command. While Redis is slow they gather, each agent once;
    while it is down they are dropped and counted.
    """

    def __init__(self, redis_url: str, namespace: str) -> None:
        self._rings = BestEffort[str](redis_url, lambda ids: [ring_command(namespace, ids)])

    @property
    def healthy(self) -> bool:
        """Whether Redis answered last."""
        return self._rings.healthy

    @property
    def dropped(self) -> int:
        """How many rings never arrived, because Redis did not answer or was known to be down."""
        return self._rings.dropped

    async def start(self) -> None:
        """Make ready to ring; Redis need not be there."""
        await self._rings.start()

    async def close(self) -> None:
        """Let the last rings out, for a second at most, and hang up."""
        await self._rings.close()

    def ring(self, agent_ids: Iterable[str]) -> None:
        """Hint that these agents may have something to do; never waits and never raises."""
        for agent_id in agent_ids:
            self._rings.offer(agent_id)
