"""Agents to whom anything happens, on a real database: nothing is lost, and all is recorded.

The model, the judge, the people and the mail do as a seed says, in the middle of model requests
too; workers die there. The `log` fixture checks every invariant of the history afterwards, and
every row against it.
"""

from __future__ import annotations

from contextlib import suppress
from random import Random

import pytest

from tests.races.hand import Hand, hired
from tests.races.whim import Dies, Whim, World
from tests.support.lives import create
from undivided.store.log import Log
from undivided.store.settings import Settings
from undivided.workers.attend import Attendant
from undivided.workers.drive import Driver
from undivided.workers.tools.registry import Tools

LIVES, ROUNDS, ENOUGH = 5, 12, 60
POLICY = {
    "maxDeliveryAttempts": 4, "retryBackoffS": [0], "mailboxCapacity": 8, "coalesceWindowMs": 0,
    "maxToolIterations": 6,
}  # fmt: skip
ON_MESSAGE = ("merge", "merge", "steer", "queue", "preempt", "abort")
TRIAGE = ("deliberation", "off")
LEFT = """
SELECT 'item', id, status FROM items
 WHERE agent_id = %s AND status IN ('queued', 'deferred', 'processing')"""
OPEN = "SELECT 'turn', id, status FROM turns WHERE agent_id = %s AND status <> 'ended'"
ASIDE = "SELECT 'session', id FROM sessions WHERE agent_id = %s AND set_aside <> '[]'"
COUNTED = """
SELECT a.waiting, a.deferred, a.merged, a.dropped,
       count(*) FILTER (WHERE i.status = 'queued'), count(*) FILTER (WHERE i.status = 'deferred'),
       count(*) FILTER (WHERE i.status = 'merged'), count(*) FILTER (WHERE i.status = 'dropped')
  FROM agents a LEFT JOIN items i ON i.agent_id = a.id WHERE a.id = %s GROUP BY a.id, a.tenant"""


@pytest.mark.parametrize("seed", range(4))
async def test_whatever_happens_nothing_is_lost(
    log: Log, settings: Settings, caplog: pytest.LogCaptureFixture, seed: int
) -> None:
    """Every item ends, every turn ends, and what is set aside comes back."""
    async with hired(settings) as hand:
        for number in range(LIVES):
            await _lives(log, hand, f"ada{number}", Random(f"{seed}/{number}"))
    faults = [one.getMessage() for one in caplog.records if "broke" in one.getMessage()]
    assert faults == []


async def _lives(log: Log, hand: Hand, agent_id: str, random: Random) -> None:
    chosen = {"onUserMessage": random.choice(ON_MESSAGE), "triage": random.choice(TRIAGE)}
    await create(log, agent_id, **{**POLICY, **chosen})
    world = World(hand, agent_id, random)
    whim = Whim(world)
    driver = Driver(hand.log, whim, Tools(test_tools=True), hand.hints)
    attendant = Attendant(hand.log, hand.locks, driver, hand.bell)
    for _ in range(ROUNDS):
        for _ in range(random.randrange(1, 4)):
            await world.happens()
        with suppress(Dies):
            await attendant.attend(agent_id)
        waiting, deferred, merged, dropped, *counted = (await world.ask(COUNTED))[0]
        assert [waiting, deferred, merged, dropped] == counted
    whim.calm = True
    for _ in range(ENOUGH):
        await world.calms()
        await world.arrives()  # whoever sleeps is woken by it
        await attendant.attend(agent_id)
        if not any([await world.ask(one) for one in (LEFT, OPEN, ASIDE)]):
            return
    left = [await world.ask(one) for one in (LEFT, OPEN, ASIDE)]
    raise AssertionError(f"left over by {agent_id}: {left}")
