"""The doorbell: a hint to some worker that an agent may have something to do.

It is never the work itself: Postgres holds that, and the sweep rings again for whoever was missed.
This is the only module that rings, and the one place that knows how a ring lies in Redis:

    <namespace>:attend         list of message ids, oldest first     } what Dramatiq's
    <namespace>:attend.msgs    hash from message id to message       } RedisBroker reads
    <namespace>:attend.wake    list of tokens, one per new message, that idle workers block on

The message's id is the agent's id. A second ring before the first is answered therefore changes
nothing, from whatever process it comes, and with no worker about the queue grows to the number of
agents and no further. A worker takes a message out of list and hash in one step *before* it
attends (`undivided.workers.broker`), so a ring is never swallowed by one that is already being
answered. Tokens are at most `TOKENS`, and die with the queue: a worker that finds it empty takes
them along; one that finds a message looks for the next without a token.
"""

from __future__ import annotations

from collections.abc import Iterable

from dramatiq import Message

from undivided.store.best_effort import BestEffort, impatient_redis

QUEUE = "attend"
ACTOR = "attend"
TOKENS = 64

# An id without its place in the queue (a queue deleted by hand) must not silence an agent for
# ever, so an empty queue always takes the message.
RING = """
for i = 2, #ARGV, 2 do
  if redis.call('hsetnx', KEYS[2], ARGV[i], ARGV[i + 1]) == 1
      or redis.call('llen', KEYS[1]) == 0 then
    redis.call('rpush', KEYS[1], ARGV[i])
    redis.call('rpush', KEYS[3], '1')
  end
end
redis.call('ltrim', KEYS[3], -tonumber(ARGV[1]), -1)
"""


def queue_keys(namespace: str) -> list[str]:
    """The keys of queue, messages and wake tokens, in the order that the scripts take them."""
    queue = f"{namespace}:{QUEUE}"
    return [queue, f"{queue}.msgs", f"{queue}.wake"]


def ring_arguments(agent_ids: Iterable[str]) -> list[str | bytes | int]:
    """The arguments that make the RING script ring for these agents."""
    arguments: list[str | bytes | int] = [TOKENS]
    for agent_id in agent_ids:
        arguments += (agent_id, _message(agent_id))
    return arguments


def _message(agent_id: str) -> bytes:
    return Message[None](
        queue_name=QUEUE,
        actor_name=ACTOR,
        args=(agent_id,),
        kwargs={},
        options={"redis_message_id": agent_id},
        message_id=agent_id,
    ).encode()


class Doorbell:
    """Rings for agents from one event loop, best effort.

    Rings of one loop tick leave in one command. While Redis is slow they gather, each agent once;
    while it is down they are dropped and counted.
    """

    def __init__(self, redis_url: str, namespace: str) -> None:
        client = impatient_redis(redis_url)
        self._script = client.register_script(RING)
        self._keys = queue_keys(namespace)
        self._sender = BestEffort[str](client, self._send)

    @property
    def healthy(self) -> bool:
        """Whether Redis took the last ring."""
        return self._sender.healthy

    @property
    def dropped(self) -> int:
        """How many rings never left because Redis did not answer or was known to be down."""
        return self._sender.dropped

    async def start(self) -> None:
        """Make ready to ring; Redis need not be there."""
        await self._sender.start()

    async def close(self) -> None:
        """Let the last rings out and hang up."""
        await self._sender.close()

    def ring(self, agent_ids: Iterable[str]) -> None:
        """Hint that these agents may have something to do; never waits and never raises."""
        for agent_id in agent_ids:
            self._sender.offer(agent_id)

    async def _send(self, agent_ids: list[str]) -> None:
        await self._script(keys=self._keys, args=ring_arguments(agent_ids))
