"""Agents that live a little on a real database, by the product's own transactions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from undivided.domain import agents, mailbox
from undivided.domain.agents import CreateAgent
from undivided.domain.dialogue import ToolCall, Usage
from undivided.domain.events import sessions as s
from undivided.domain.events.items import Payload, Sender
from undivided.domain.outcomes import Completed, Failed, Outcome
from undivided.domain.policy import DEFAULT_POLICY
from undivided.domain.recorded import Meta, agent_stream
from undivided.domain.tooling import Noted
from undivided.domain.turn import idempotency_key
from undivided.domain.waits import Sleep
from undivided.store import landing
from undivided.store.database import Database
from undivided.store.flights import Flight
from undivided.store.fresh import fresh_id
from undivided.store.log import Addition, Log
from undivided.store.takeoff import take_off

BY = Meta(actor="test")


@asynccontextmanager
async def log_at(url: str) -> AsyncIterator[Log]:
    """A log on one database."""
    database = Database(url)
    await database.open()
    try:
        yield Log(database)
    finally:
        await database.close()


async def create(log: Log, agent_id: str, **policy: Any) -> None:
    """An agent, started; what it puts off stays put off for longer than any test runs."""
    command = CreateAgent(
        agent_id=agent_id, name=agent_id, policy={"retryBackoffS": [3600], **policy}
    )
    events = agents.create(DEFAULT_POLICY, command)
    await log.append([Addition(agent_stream(agent_id), 0, events)], BY)


async def accept(log: Log, agent_id: str, *contents: str, session: str | None = None) -> list[str]:
    """Put messages into a mailbox; answers their ids."""
    commands = tuple(
        mailbox.Accept(
            item_id=fresh_id("mbx"), source_type="human_chat", payload=Payload(content),
            sender=Sender("ada", "Ada", "user"), session_id=session,
        )
        for content in contents
    )  # fmt: skip
    async with log.locked(agent_id) as tx:
        await tx.append([tx.addition(*mailbox.accept(tx.agent, commands))], BY)
    return [command.item_id for command in commands]


async def begin(log: Log, agent_id: str, worker: str = "wrk_1") -> Flight:
    """A worker takes the agent and what is due."""
    flight = await take_off(log, agent_id, worker)
    assert flight is not None
    return flight


def response(flight: Flight, text: str, *tools: str) -> s.ModelResponded:
    """One model response that asks for `tools`."""
    step = flight.state.responses
    calls = tuple(
        ToolCall(f"call-{flight.turn.id}-{step}-{n}", tool, {"n": n})
        for n, tool in enumerate(tools)
    )
    return s.ModelResponded(
        turn_id=flight.turn.id, step=step, text=text, calls=calls,
        usage=Usage(10, 5, 0, 1), model="m", epoch=flight.epoch,
    )  # fmt: skip


async def run_call(log: Log, flight: Flight, result: str, *noted: Noted) -> None:
    """The first open call starts and is answered."""
    call = flight.state.open[0].call
    await landing.record(
        log, flight,
        s.ToolCallStarted(
            turn_id=flight.turn.id, call_id=call.id, tool=call.tool, args=call.args,
            effect="once", idempotency_key=idempotency_key(flight.turn.id, call.id),
            epoch=flight.epoch,
        ),
    )  # fmt: skip
    finished = s.ToolCallFinished(
        turn_id=flight.turn.id, call_id=call.id, tool=call.tool, resolution="returned",
        content=result, epoch=flight.epoch,
    )  # fmt: skip
    if noted:
        await landing.record_noting(log, flight, finished, noted)
    else:
        await landing.record(log, flight, finished)


async def suspend(log: Log, flight: Flight, seconds: float = 0) -> None:
    """The turn waits inside its first open call, and lets go."""
    await landing.suspend(log, flight, flight.state.open[0].call.id, Sleep(seconds))


async def answer(
    log: Log, flight: Flight, text: str, outcome: Outcome | None = None
) -> Flight | None:
    """The turn ends with its last response; answers the next turn of the same flight."""
    last = (response(flight, text),)
    then = await landing.end(log, flight, outcome or Completed(text), last, leaving=False)
    return None if isinstance(then, landing.Rested) else then


REFUSED = Failed("refused", "the model would not", retryable=False)
BUSY = Failed("rate_limited", "later", retryable=True)


async def live(log: Log, agent_id: str, words: str = "hello") -> None:
    """A whole little life: tools, memory, a wait, a crash, a dead letter, something left over."""
    await create(log, agent_id)
    await accept(log, agent_id, f"{words} 1 \x00\ud800", f"{words} 2", f"{words} 3")
    flight = await begin(log, agent_id)
    await landing.record(log, flight, response(flight, "let me see", "look", "look"))
    await run_call(log, flight, f"{words} seen \x1a", Noted(f"{words}\x00", words))
    await begin(log, agent_id, "wrk_2")  # the first worker is gone
    flight = await begin(log, agent_id, "wrk_3")
    await run_call(log, flight, "seen again")
    await landing.record(log, flight, response(flight, "wait", "rest"))
    await suspend(log, flight)
    flight = await begin(log, agent_id)
    next_turn = await answer(log, flight, f"{words} answered")
    assert next_turn is not None
    next_turn = await answer(log, next_turn, "", REFUSED)
    assert next_turn is not None
    assert await answer(log, next_turn, "", BUSY) is None
