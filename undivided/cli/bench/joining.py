"""Rows of a burst: many comments on one task, which become one item."""

from __future__ import annotations

from functools import partial

from undivided.cli.bench import samples
from undivided.cli.bench.measuring import Bench, in_turns, rate
from undivided.cli.bench.rows import Row
from undivided.domain.events.items import Payload, Sender
from undivided.domain.mailbox import Accept
from undivided.domain.stimuli import TASK_COMMENT
from undivided.store.commands.accepting import accept_stimuli
from undivided.store.commands.outlet import Outlet
from undivided.store.fresh import fresh_id

BURST = 1_000
EARLY = 10
TIMED = 10
"""Comments that one figure is the mean of; the last of them is the one that it is named after."""


async def burst(bench: Bench) -> list[Row]:
    """What the last comment of a burst costs beside an early one."""
    bench.tell("a burst of comments")
    last, early = await in_turns(
        bench.rounds, partial(_nth, bench, BURST), partial(_nth, bench, EARLY)
    )
    return [
        Row(group="burst", work=f"accept comment {BURST:,} of a burst on one task, one item",
            unit="ms", ours=last, theirs=early, reference=f"accept comment {EARLY} of it",
            at_most=1.5),
    ]  # fmt: skip


async def _nth(bench: Bench, number: int) -> float:
    """The milliseconds of the comments up to `number` of a burst at a new agent."""
    outlet, agent_id = samples.deaf(bench.log), await samples.new_agent(bench.log)
    await _accept(outlet, agent_id)
    for _ in range(number - TIMED - 1):
        await _accept(outlet, agent_id)
    per_second = await rate(min(TIMED, number - 1), lambda _: _accept(outlet, agent_id))
    await _check(bench, agent_id)
    return 1000 / per_second


async def _accept(outlet: Outlet, agent_id: str) -> None:
    comment = Accept(
        item_id=fresh_id("mbx"), source_type=TASK_COMMENT,
        payload=Payload(samples.SAID, task_id="tsk_bench"),
        sender=Sender("u-17", "Ines", "user"),
    )  # fmt: skip
    await accept_stimuli(outlet, agent_id, [comment], samples.META)


async def _check(bench: Bench, agent_id: str) -> None:
    """What was measured was joining."""
    agent = (await bench.log.view(agent_id)).agent
    if agent is None or agent.waiting != 1:
        raise RuntimeError("the comments of a burst did not become one item")
