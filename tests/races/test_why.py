"""The story of what was preempted, came back, was weighed and went into a running turn."""

from __future__ import annotations

from tests.races.hand import hired
from tests.races.test_interrupts import send, through_the_tool
from tests.support.lives import create
from undivided.domain.why.story import Sentence, tell
from undivided.store.log import Log
from undivided.store.queries.reading import Reading
from undivided.store.queries.why import why
from undivided.store.settings import Settings


async def told(log: Log, item_id: str) -> tuple[Sentence, ...]:
    return tell(await why(Reading(log.database), item_id))


async def test_preempted_and_back(log: Log, settings: Settings) -> None:
    """Both sides tell it: who gave way, and for whom."""
    await create(log, "ada")
    work = await send(log, "system_event", "work")
    async with hired(settings) as hand:
        await through_the_tool(hand, send(log, "human_chat", "hello", sender="bob", role="user"))
    story = await told(log, work)
    (preempted,) = [one for one in story if one.kind == "preempted"]
    assert preempted.decision is not None
    chat = str(preempted.decision.inputs["candidate"])
    assert preempted.text.startswith(f"It was set aside for {chat}, by rule R1")
    kinds = [one.kind for one in story]
    assert sorted(kinds) == sorted(
        ["accepted", "picked", "turn_started", "preempted", "resurfaced", "resumed", "completed",
         "turn_ended"]
    )  # fmt: skip
    assert kinds.index("preempted") < kinds.index("resurfaced") < kinds.index("resumed")
    assert "1 tool call (test_return)" in next(o.text for o in story if o.kind == "turn_ended")
    other = await told(log, chat)
    (preempts,) = [one.text for one in other if one.kind == "preempts"]
    assert preempts.startswith(f"{work}, which was at work, was set aside for it")
    assert "weighed" in [one.kind for one in other]


async def test_merged_into_the_turn_at_work(log: Log, settings: Settings) -> None:
    """It is told what it went into, and that the turn was told."""
    await create(log, "ada")
    first = await send(log, "human_chat", "work", sender="bob", role="user")
    async with hired(settings) as hand:
        await through_the_tool(hand, send(log, "human_chat", "more", sender="bob", role="user"))
    survivor = await told(log, first)
    (joined,) = [one for one in survivor if one.kind == "joined"]
    more = joined.text.split()[0]
    story = await told(log, more)
    assert sorted(one.kind for one in story) == ["accepted", "merged", "survivor", "turn_updated"]
    assert f"{first} is over, with the outcome completed." == story[-1].text


async def test_left_waiting(log: Log, settings: Settings) -> None:
    """What was weighed and had to wait says by which rule."""
    await create(log, "ada")
    await send(log, "human_chat", "work", sender="bob", role="user")
    async with hired(settings) as hand:
        sent = send(log, "heartbeat", "patrol")
        await through_the_tool(hand, sent)
    rows = await Reading(log.database).rows(
        "SELECT id FROM items WHERE tenant = %(tenant)s AND source_type = 'heartbeat'"
    )
    story = await told(log, rows[0][0])
    (weighed,) = [one.text for one in story if one.kind == "weighed"]
    assert weighed.startswith("It was weighed against the turn at work, and it was left waiting")
