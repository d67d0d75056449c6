"""A backlog of agents: the sweep gets round to all of them, and what is urgent does not wait."""

from __future__ import annotations

from tests.races.hand import hired
from tests.support.lives import BY, accept, begin, create, response, suspend
from undivided.domain import agents, mailbox
from undivided.domain.agents import CreateAgent
from undivided.domain.errors import Corrupt
from undivided.domain.events.agents import AgentCreated
from undivided.domain.events.items import Payload
from undivided.domain.policy import DEFAULT_POLICY
from undivided.domain.recorded import agent_stream
from undivided.projections.agents import reduce
from undivided.store import landing
from undivided.store.batch import number
from undivided.store.fresh import fresh_id
from undivided.store.functions import AGENTS_SEEN as SEEN
from undivided.store.log import Addition, Log
from undivided.store.settings import Settings


async def crowd(log: Log, names: list[str]) -> None:
    """Agents with a message each, for whom nobody was rung."""
    at = await log.database.hear_clock()
    for first in range(0, len(names), 100):
        additions = []
        for name in names[first : first + 100]:
            (created, *rest) = agents.create(DEFAULT_POLICY, CreateAgent(agent_id=name, name=name))
            (born, *_) = number([Addition(agent_stream(name), 0, (created,))], BY, at)
            row = reduce(None, born)
            if row is None or not isinstance(created, AgentCreated):
                raise Corrupt("an agent that was created is not there")
            command = mailbox.Accept(
                item_id=fresh_id("mbx"), source_type="human_chat", payload=Payload("hello")
            )
            events = (created, *rest, *mailbox.accept(row, (command,)))
            additions.append(Addition(agent_stream(name), 0, events))
        await log.append(additions, BY)


async def test_it_gets_round(log: Log, settings: Settings) -> None:
    """Each sweep looks at the next thousand, and then begins again."""
    names = [f"a{n:04}" for n in range(SEEN + 100)]
    await crowd(log, names)
    async with hired(settings) as hand:
        first = await hand.locks.sweep(30, SEEN)
        second = await hand.locks.sweep(30, SEEN)
        third = await hand.locks.sweep(30, SEEN)
    assert sorted(first.agents) == names[:SEEN]
    assert sorted(second.agents) == names[SEEN:]
    assert (first.after, second.after, third.after) == (names[SEEN - 1], "", names[SEEN - 1])


async def test_what_is_urgent_does_not_wait(log: Log, settings: Settings) -> None:
    """C22, C42: a turn without a worker, and a wait that is over, behind all the others."""
    await crowd(log, [f"a{n:04}" for n in range(SEEN + 1)])
    for name in ("lost", "slept"):
        await create(log, name)
        await accept(log, name, "one")
    await begin(log, "lost")
    sleeper = await begin(log, "slept")
    await landing.record(log, sleeper, response(sleeper, "", "sleep"))
    await suspend(log, sleeper, 0)
    async with hired(settings) as hand:
        swept = await hand.locks.sweep(30, 2 * SEEN)
    assert swept.after == f"a{SEEN - 1:04}"
    assert {"lost", "slept"} <= set(swept.agents)
