"""Joining what waits, by real transactions: who joins whom, whatever comes between.

The numbers are those of the scenarios in the behaviour catalogue.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest

from tests.races.hand import Bell, hired
from tests.races.staging import Stage
from tests.races.test_remembered import Watched
from tests.support.lives import BUSY, BY, answer, begin, response, suspend
from undivided.domain import agents
from undivided.domain.agents import CreateAgent
from undivided.domain.errors import Full
from undivided.domain.events.items import ItemDropped, ItemMerged, Payload, Sender
from undivided.domain.events.sessions import TurnStarted
from undivided.domain.mailbox import Accept
from undivided.domain.policy import DEFAULT_POLICY
from undivided.domain.recorded import agent_stream
from undivided.domain.state.item import ItemRow, Merged, Queued
from undivided.store import landing
from undivided.store.commands.accepting import accept_stimuli
from undivided.store.commands.mailbox import drop_status_updates
from undivided.store.commands.outlet import Outlet
from undivided.store.fresh import fresh_id
from undivided.store.hints import Hints
from undivided.store.log import Addition, Log
from undivided.store.settings import Settings


class Heard(Bell):
    """A doorbell that lets the test wait for its first ring."""

    def __init__(self) -> None:
        super().__init__()
        self.first = asyncio.Event()

    def ring(self, agent_ids: Iterable[str]) -> None:
        super().ring(agent_ids)
        self.first.set()


@pytest.fixture
def bell() -> Heard:
    """The doorbell of the process that accepts."""
    return Heard()


@pytest.fixture
def process(log: Log, bell: Heard, settings: Settings) -> Outlet:
    """A process that accepts."""
    return Outlet(Watched(log.database), bell, Hints(settings.redis_url, "nobody"))


async def newborn(log: Log, **policy: Any) -> None:
    """An agent with parameters of its own."""
    command = CreateAgent(agent_id="ada", name="ada", policy=policy)
    events = agents.create(DEFAULT_POLICY, command)
    await log.append([Addition(agent_stream("ada"), 0, events)], BY)


def comment(content: str = "text", task: str = "t", role: Any = "agent", **more: Any) -> Accept:
    """A comment on a task."""
    return Accept(
        item_id=fresh_id("mbx"), source_type="task_comment",
        payload=Payload(content, task_id=task), sender=Sender(role=role), **more,
    )  # fmt: skip


def channel(content: str, sender: str) -> Accept:
    """A message in the team's channel."""
    extra = {"channelKey": "group:team1", "senderName": sender}
    return Accept(
        item_id=fresh_id("mbx"), source_type="a2a_message", payload=Payload(content, extra=extra)
    )


def plain(kind: str, **about: Any) -> Accept:
    return Accept(item_id=fresh_id("mbx"), source_type=kind, payload=Payload(kind, **about))


async def put(process: Outlet, *commands: Accept) -> tuple[ItemRow, ...]:
    """Accept in one transaction."""
    return (await accept_stimuli(process, "ada", commands, BY)).items


async def put_each(process: Outlet, *commands: Accept) -> list[ItemRow]:
    """Accept each in a transaction of its own."""
    return [(await put(process, command))[0] for command in commands]


def into(item: ItemRow) -> str | None:
    return item.phase.into if isinstance(item.phase, Merged) else None


async def test_039_the_answer_names_the_survivor(log: Log, process: Outlet) -> None:
    """Its own id and the older item's; the queue is one long."""
    await newborn(log)
    first, second = await put_each(
        process, channel("Hello everyone!", "Alice"), channel("Hey there!", "Bob")
    )
    assert (into(first), into(second)) == (None, first.id)
    view = await log.view("ada")
    assert view.agent is not None
    assert (view.agent.waiting, view.agent.merged) == (1, 1)


async def test_045_who_waits_is_woken_for_all(
    log: Log, process: Outlet, bell: Heard, stage: Stage, settings: Settings
) -> None:
    """Rung for once, when the window is over; then one turn has both."""
    await newborn(log, coalesceWindowMs=50)
    await put_each(process, channel("one", "Alice"), channel("two", "Bob"))
    assert bell.rung == []
    async with asyncio.timeout(10), hired(settings) as hand:
        await bell.first.wait()
        await hand.attend("ada")
        while not hand.model.asked:  # the window ends by the database's clock
            await hand.attend("ada")
        assert hand.model.inputs() == ["one\n\n---\n[Bob]: two"]
    assert bell.rung == ["ada"]
    assert len(await stage.events(TurnStarted)) == 1


async def test_069_one_heartbeat_waits(log: Log, process: Outlet, stage: Stage) -> None:
    """Rulings 8 and 46: the newest; also of one batch."""
    await newborn(log)
    await put_each(process, plain("heartbeat"), plain("heartbeat"))
    *_, last = await put(process, plain("heartbeat"), plain("heartbeat"))
    assert isinstance(last.phase, Queued)
    gone = await stage.events(ItemDropped)
    assert [one.reason for one in gone] == ["superseded"] * 3
    waiting = await stage.ask("SELECT id FROM items WHERE status = 'queued'")
    assert waiting == [(last.id,)]


async def test_068_three_comments_are_one(log: Log, process: Outlet) -> None:
    """What the catalogue does when a process begins is so at every moment."""
    await newborn(log)
    first, *others = await put_each(process, comment("a"), comment("b"), comment("c"))
    assert [into(one) for one in others] == [first.id, first.id]


async def test_two_at_once_are_one(log: Log, process: Outlet, stage: Stage) -> None:
    """Whichever comes first, the other joins it."""
    await newborn(log)
    async with stage.holding("agent:ada"):
        one = await stage.begin_waiting(put(process, comment("a")))
        two = await stage.begin_waiting(put(process, comment("b")))
    ((first,), (second,)) = await one, await two
    assert {into(first), into(second)} - {None} <= {first.id, second.id}
    assert len(await stage.events(ItemMerged)) == 1


async def test_what_is_full_is_passed_over(log: Log, process: Outlet) -> None:
    """And the next of its key is joined instead."""
    await newborn(log)
    big = "x" * 600_000
    a, b, c, d, e = await put_each(
        process, comment(), comment(big), comment(big), comment(big), comment()
    )
    assert [into(one) for one in (a, b, c, d, e)] == [None, a.id, None, c.id, a.id]


async def test_what_is_tried_again_later_is_not_joined(log: Log, process: Outlet) -> None:
    """A new comment need not wait for it."""
    await newborn(log, coalesceWindowMs=0, retryBackoffS=[3600])
    await put(process, comment("first"))
    flight = await begin(log, "ada")
    assert await answer(log, flight, "", BUSY) is None
    (new,) = await put(process, comment("second"))
    assert into(new) is None


async def test_what_asks_for_another_place_is_not_joined(log: Log, process: Outlet) -> None:
    """Another session, or to enter the turn at work."""
    await newborn(log)
    items = await put_each(
        process, comment(), comment(session_id="s1"), comment(delivery="steer"),
        comment(session_id="s1"),
    )  # fmt: skip
    assert [into(one) for one in items] == [None, None, None, items[1].id]


async def test_a_full_mailbox_takes_what_joins(log: Log, process: Outlet) -> None:
    """It takes no room; anything else is refused."""
    await newborn(log, mailboxCapacity=1)
    first, second = await put_each(process, comment(), comment())
    assert into(second) == first.id
    with pytest.raises(Full):
        await put(process, comment(task="another"))


async def test_the_lock_is_taken_for_what_can_join(log: Log, process: Outlet) -> None:
    """Who waits is not remembered; what cannot join goes the fast way as before."""
    await newborn(log)
    await put_each(process, plain("system_event"), comment(), comment())
    assert isinstance(process.log, Watched)
    before = process.log.recalls
    await put(process, comment())
    assert process.log.recalls == before
    await put(process, plain("system_event"))
    assert process.log.recalls == before + 1


async def test_a_turn_that_waits_is_told_of_what_joins(
    log: Log, process: Outlet, bell: Heard
) -> None:
    """It may have let the item pass before, and weighs it again."""
    await newborn(log)
    await put(process, plain("system_event"))
    flight = await begin(log, "ada")
    await put(process, comment())
    await landing.record(log, flight, response(flight, "", "sleep"))
    await suspend(log, flight, 3600)
    assert bell.rung == ["ada"]
    await put(process, comment(role="user"))
    assert bell.rung == ["ada", "ada"]


async def test_021_a_task_that_is_begun_anew_drops_its_news(
    log: Log, process: Outlet, stage: Stage
) -> None:
    """And nothing else."""
    await newborn(log)
    kind, starts = "task_status_update", {"triggerExecution": True}
    x1, x2, *_rest = await put_each(
        process, plain(kind, task_id="x"), plain(kind, task_id="x"), plain(kind, task_id="y"),
        plain(kind, task_id="x", extra=starts), comment(task="x"),
    )  # fmt: skip
    assert await drop_status_updates(process, "ada", "x", BY) == (x1.id, x2.id)
    assert await drop_status_updates(process, "ada", "x", BY) == ()
    (counted,) = await stage.ask("SELECT waiting, dropped FROM agents")
    assert counted == (3, 2)
