"""Appending on what is remembered: right if nothing happened meanwhile, refused if anything did."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import psycopg
import pytest

from tests.races.hand import Bell, hired
from tests.races.staging import Stage
from tests.races.test_strangers import accept_from_the_future
from tests.support.lives import BUSY, BY, accept, answer, begin, create, log_at, response
from tests.support.servers import Database
from undivided.domain import agents, mailbox
from undivided.domain.errors import Conflict
from undivided.domain.events.items import ItemPicked, Payload, StimulusAccepted
from undivided.domain.policy import DEFAULT_POLICY
from undivided.domain.recorded import agent_stream
from undivided.domain.state.view import AgentView
from undivided.store.checking import check
from undivided.store.commands.accepting import accept_stimuli
from undivided.store.commands.outlet import Outlet
from undivided.store.flights import QUEUE_SEEN
from undivided.store.fresh import fresh_id
from undivided.store.hints import Hints
from undivided.store.log import Addition, AgentTx, Log
from undivided.store.rebuild import rebuild
from undivided.store.repairing import repair
from undivided.store.settings import Settings


class Watched(Log):
    """A log that says how often it was asked to go by what it remembers."""

    recalls = 0

    @asynccontextmanager
    async def recalled(self, view: AgentView, queue: int = 0) -> AsyncIterator[AgentTx]:
        self.recalls += 1
        async with super().recalled(view, queue) as tx:
            yield tx


@pytest.fixture
async def process(log: Log, settings: Settings) -> Outlet:
    """A process that accepts, beside all that `log` does."""
    return Outlet(Watched(log.database), Bell(), Hints(settings.redis_url, "nobody"))


@pytest.fixture
async def elsewhere(database: Database) -> AsyncIterator[Log]:
    """Another process."""
    async with log_at(database.app_url) as log:
        yield log


def stimulus(content: str, priority: int | None = None) -> mailbox.Accept:
    return mailbox.Accept(
        item_id=fresh_id("mbx"), source_type="human_chat", payload=Payload(content),
        priority=priority,
    )  # fmt: skip


async def say(process: Outlet, *contents: str) -> None:
    await accept_stimuli(process, "ada", [stimulus(content) for content in contents], BY)


def recalls(process: Outlet) -> int:
    assert isinstance(process.log, Watched)
    return process.log.recalls


async def append_by(log: Log, view: AgentView) -> None:
    async with log.recalled(view) as tx:
        await tx.append([tx.addition(*mailbox.accept(tx.agent, (stimulus("again"),)))], BY)


class TestAccepting:
    """A burst goes by what the last append left; a stranger's append in between is noticed."""

    async def test_a_burst(self, process: Outlet, log: Log, stage: Stage) -> None:
        await create(log, "ada")
        for content in ("one", "two", "three"):
            await say(process, content)
        assert recalls(process) == 2
        assert [one.seq for one in await stage.events(StimulusAccepted)] == [1, 2, 3]

    async def test_somebody_else_was_there(
        self, process: Outlet, elsewhere: Log, log: Log, stage: Stage
    ) -> None:
        """C58: what is remembered is one stimulus short; nothing is lost, nothing comes twice."""
        await create(log, "ada")
        await say(process, "one")
        await accept(elsewhere, "ada", "two")
        await say(process, "three")
        assert recalls(process) == 1
        accepted = await stage.events(StimulusAccepted)
        assert [(one.seq, one.payload.content) for one in accepted] == [
            (1, "one"), (2, "two"), (3, "three"),
        ]  # fmt: skip

    async def test_somebody_else_is_there(
        self, process: Outlet, elsewhere: Log, log: Log, stage: Stage
    ) -> None:
        """C14, C15: both want the stream now, one on a look, one on what it remembers."""
        await create(log, "ada")
        await say(process, "one")
        async with stage.holding("agent:ada"):
            other = await stage.begin_waiting(accept(elsewhere, "ada", "two"))
            mine = await stage.begin_waiting(say(process, "three"))
        await asyncio.gather(other, mine)
        assert recalls(process) == 1
        accepted = await stage.events(StimulusAccepted)
        assert sorted(one.payload.content for one in accepted) == ["one", "three", "two"]
        assert [one.seq for one in accepted] == [1, 2, 3]

    async def test_a_mailbox_that_was_full(
        self, process: Outlet, elsewhere: Log, log: Log, stage: Stage
    ) -> None:
        """Nobody is refused for what was so: a refusal is decided on what is there."""
        command = agents.CreateAgent(agent_id="ada", name="ada", policy={"mailboxCapacity": 1})
        events = agents.create(DEFAULT_POLICY, command)
        await log.append([Addition(agent_stream("ada"), 0, events)], BY)
        await say(process, "one")
        await begin(elsewhere, "ada")
        await say(process, "two")
        assert len(await stage.events(StimulusAccepted)) == 2

    async def test_many_of_one_process(self, process: Outlet, log: Log, stage: Stage) -> None:
        """They queue for the lock; only one who is alone goes by what is remembered."""
        await create(log, "ada")
        await say(process, "first")
        await asyncio.gather(*(say(process, str(n)) for n in range(20)))
        assert recalls(process) == 1
        assert [one.seq for one in await stage.events(StimulusAccepted)] == list(range(1, 22))


class TestRowsMadeAnew:
    """Rows that were made anew are not what is remembered, though their stream is as it was."""

    async def test_after_a_rebuild(self, log: Log, database: Database) -> None:
        await create(log, "ada")
        view = await log.view("ada")
        await rebuild(database.owner_url)
        with pytest.raises(Conflict, match="edition"):
            await append_by(log, view)

    async def test_after_a_repair(self, log: Log, stage: Stage, database: Database) -> None:
        """A wrong row that was read before it was mended does not come back."""
        await create(log, "ada")
        await stage.ask("UPDATE agents SET waiting = 7 WHERE id = 'ada'")
        view = await log.view("ada")
        await repair(database.app_url, await check(database.app_url))
        with pytest.raises(Conflict, match="edition"):
            await append_by(log, view)

    async def test_during_a_rebuild(self, log: Log, stage: Stage, database: Database) -> None:
        """The append waits for the rebuild, and sees the edition that it left."""
        await create(log, "ada")
        view = await log.view("ada")
        async with await psycopg.AsyncConnection.connect(database.owner_url) as owner:
            await owner.execute("LOCK TABLE streams IN EXCLUSIVE MODE")
            late = await stage.begin_waiting(append_by(log, view))
            await owner.execute("UPDATE log_base SET edition = edition + 1")
            await owner.commit()
        with pytest.raises(Conflict, match="edition"):
            await late
        assert await stage.events(StimulusAccepted) == []


class TestTurns:
    """A flight goes by its own look at the agent, and looks again if that was overtaken."""

    async def test_taking_off_while_something_is_accepted(
        self, elsewhere: Log, log: Log, stage: Stage
    ) -> None:
        await create(log, "ada")
        await accept(log, "ada", "one")
        async with stage.holding("agent:ada"):
            producer = await stage.begin_waiting(accept(elsewhere, "ada", "two"))
            taking = await stage.begin_waiting(begin(log, "ada"))
        await producer
        flight = await taking
        (picked,) = await stage.events(ItemPicked)
        assert picked.decision.inputs["waiting"] == 2
        assert flight.turn.id == picked.turn_id

    async def test_a_retry_that_something_better_came_before(self, log: Log, stage: Stage) -> None:
        """What is put back in one turn is there for the turn after the next."""
        command = agents.CreateAgent(agent_id="ada", name="ada", policy={"retryBackoffS": [0]})
        events = agents.create(DEFAULT_POLICY, command)
        await log.append([Addition(agent_stream("ada"), 0, events)], BY)
        async with log.locked("ada") as tx:
            late = mailbox.accept(tx.agent, (stimulus("one", priority=3),))
            await tx.append([tx.addition(*late)], BY)
        flight = await begin(log, "ada")
        async with log.locked("ada") as tx:
            better = mailbox.accept(tx.agent, (stimulus("two", priority=1),))
            await tx.append([tx.addition(*better)], BY)
        second = await answer(log, flight, "", BUSY)
        assert second is not None
        assert second.item.payload.content == "two"
        third = await answer(log, second, "so")
        assert third is not None
        assert third.item.payload.content == "one"
        assert await answer(log, third, "so") is None
        assert await stage.ask("SELECT DISTINCT status FROM items") == [("completed",)]

    async def test_something_waits_behind_what_nobody_knows(self, log: Log) -> None:
        """C01, C32: the flight saw a view full of other types, and looks again."""
        await create(log, "ada")
        await accept_from_the_future(log, "ada", QUEUE_SEEN - 1)
        await accept(log, "ada", "one", "two")
        following = await answer(log, await begin(log, "ada"), "so")
        assert following is not None
        assert following.item.payload.content == "two"

    async def test_something_is_due_by_then(self, log: Log, stage: Stage) -> None:
        """C01: what was put off and is due is turned to at once, not at the next sweep."""
        command = agents.CreateAgent(agent_id="ada", name="ada", policy={"retryBackoffS": [0.01]})
        events = agents.create(DEFAULT_POLICY, command)
        await log.append([Addition(agent_stream("ada"), 0, events)], BY)
        await accept(log, "ada", "one", "two")
        second = await answer(log, await begin(log, "ada"), "", BUSY)
        assert second is not None
        async with asyncio.timeout(10):
            while not await stage.ask("SELECT 1 FROM items WHERE not_before <= clock_timestamp()"):
                await asyncio.sleep(0.005)
        third = await answer(log, second, "so")
        assert third is not None
        assert third.item.payload.content == "one"

    async def test_a_repair_under_a_lock(self, log: Log, stage: Stage, database: Database) -> None:
        """The session is mended while a flight holds the agent: the end does not undo it."""
        await create(log, "ada")
        await accept(log, "ada", "one")
        await answer(log, await begin(log, "ada"), "so")
        await accept(log, "ada", "two")
        await stage.ask("UPDATE sessions SET turns = 40")
        flight = await begin(log, "ada")
        flight.remembered = None
        checked = await check(database.app_url)
        async with log.locked("ada", QUEUE_SEEN) as tx:
            await repair(database.app_url, checked)
            ending = flight.session_events(response(flight, "so"))
            with pytest.raises(Conflict, match="edition"):
                await tx.append([ending], BY, flight.fence, flight.known(tx.view.edition))

    async def test_rows_made_anew_under_a_turn(
        self, log: Log, stage: Stage, database: Database
    ) -> None:
        """The turn ends on rows as they are now."""
        await create(log, "ada")
        await accept(log, "ada", "one")
        flight = await begin(log, "ada")
        await stage.ask("UPDATE turns SET flights = 9")
        await repair(database.app_url, await check(database.app_url))
        assert await answer(log, flight, "so") is None


class TestAskingForLocks:
    """Many locks are asked for in one message; each answer belongs to its question."""

    async def test_many_at_once(self, stage: Stage, settings: Settings) -> None:
        async with hired(settings) as hand, hired(settings) as other:
            names = [f"a{number}" for number in range(30)]
            assert await other.locks.try_acquire("a7")
            got = await asyncio.gather(*(hand.locks.try_acquire(name) for name in names))
            assert [name for name, taken in zip(names, got, strict=True) if not taken] == ["a7"]
            await asyncio.gather(*(hand.locks.release(n) for n in names if n != "a7"))
            assert not hand.locks.lost.is_set()
            await other.locks.release("a7")
            await stage.until_free()

    async def test_one_that_gives_up_before_it_was_asked(
        self, stage: Stage, settings: Settings
    ) -> None:
        """C37: nobody holds what nobody waits for."""
        async with hired(settings) as hand:
            first, second = (
                asyncio.create_task(hand.locks.try_acquire(name)) for name in ("ada", "bob")
            )
            await asyncio.sleep(0)  # the first is on its way, the second waits for it
            second.cancel()
            assert await first
            with suppress(asyncio.CancelledError):
                await second
            assert hand.locks.held == {"ada"}
            assert len(await stage.ask("SELECT 1 FROM pg_locks WHERE locktype = 'advisory'")) == 1

    async def test_one_that_gives_up_while_it_is_asked(self, settings: Settings) -> None:
        """C37: whether it is held is unknown then, so that everything is let go of."""
        async with hired(settings) as hand:
            asking = asyncio.create_task(hand.locks.try_acquire("ada"))
            await asyncio.sleep(0)
            asking.cancel()
            with suppress(asyncio.CancelledError):
                await asking
            assert hand.locks.lost.is_set()


async def test_the_same_large_texts_in_another_order(log: Log) -> None:
    """C12: appends that store the same blobs do not wait for each other crosswise."""
    for name in ("ada", "bob"):
        await create(log, name)
    texts = [str(n) * 300_000 for n in range(4)]
    for _ in range(3):
        await asyncio.gather(accept(log, "ada", *texts), accept(log, "bob", *reversed(texts)))
