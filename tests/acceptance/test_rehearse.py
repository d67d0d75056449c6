"""Recorded conversations run through the real service, whatever dies in the middle.

Needs the `stack` fixture: API, workers and clock as child processes on a fresh database. Used
of it: `url`, `pids(kind)` with the process ids of "api" or "worker", `start(kind)` which starts
one more process of that kind (an API on the same port).
"""

from __future__ import annotations

import os
import secrets
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from undivided.cli.client import Client
from undivided.cli.readers.conversation import Conversation, Spoken
from undivided.cli.readers.detection import read_conversation
from undivided.cli.rehearse.again import play_again
from undivided.cli.rehearse.cast import cast_players
from undivided.cli.rehearse.drive import Rehearsed, drive
from undivided.cli.rehearse.plan import Plan, plan_rehearsal

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "docs" / "examples" / "repair-evening.jsonl"
PATIENCE_S = 60.0


def real_logs() -> list[Path]:
    """Recorded conversations outside the repository, where there are any."""
    given = os.environ.get("UNDIVIDED_WHO_AND_WHEN")
    folder = Path(given) if given else ROOT.parent / "shared" / "data" / "who_and_when"
    return sorted(folder.glob("*/*.json"))


def plan_of(path: Path) -> Plan:
    """The plan of a recorded conversation."""
    return plan_rehearsal(read_conversation(path))


async def rehearse(
    client: Client, plan: Plan, run: str | None = None, on_turn: Callable[[], None] | None = None
) -> Rehearsed:
    """Drive a plan; what went wrong fails the test with its sentence."""
    run = run or f"reh_{secrets.token_hex(4)}"
    result, trouble = await drive(client, plan, run, PATIENCE_S, on_turn or (lambda: None))
    assert not trouble
    return result


async def test_the_example_keeps_its_order(stack: Any) -> None:
    """Every message once, in order, one agent for each speaker."""
    async with Client(stack.url, patience_s=PATIENCE_S) as client:
        result = await rehearse(client, plan_of(EXAMPLE))
    assert result.order_kept
    assert (result.messages, result.agents, result.turns) == (15, 4, 12)


async def test_thoughts_are_working_memory(stack: Any) -> None:
    """What was only thought is noted by its thinker and said to nobody."""
    said = (Spoken("lead", "hm", thought=True), Spoken("lead", "go"))
    async with Client(stack.url, patience_s=PATIENCE_S) as client:
        plan = plan_rehearsal(Conversation("talk", "why?", said))
        await rehearse(client, plan, "reh_thoughts")
        player = cast_players(plan.agents, "reh_thoughts")["lead"]
        mind = await client.get(f"/agents/{player.agent_id}/mind")
    assert [(n["key"], n["content"]) for n in mind["workingMemory"]] == [("thought-0000", "hm")]


async def test_strange_characters_come_through(stack: Any) -> None:
    """NUL, lone surrogates and all line ends of Unicode, in messages and thoughts."""
    strange = "a\x00b\ud800c\u2028d\\u0000e\r\n"
    said = (
        Spoken("Noor", strange, person=True),
        Spoken("lead", strange, thought=True),
        Spoken("lead", strange),
        Spoken("writer", "fine"),
    )
    async with Client(stack.url, patience_s=PATIENCE_S) as client:
        result = await rehearse(client, plan_rehearsal(Conversation("talk", "", said)))
    assert result.order_kept


@pytest.mark.process
async def test_workers_and_the_api_are_killed_in_mid_run(stack: Any) -> None:
    """Nothing is lost, doubled or out of order."""
    plan = plan_of(EXAMPLE)
    ends = {3: "worker", 6: "api", 9: "worker"}
    done = 0

    def on_turn() -> None:
        nonlocal done
        done += 1
        if kind := ends.get(done):
            os.kill(stack.pids(kind)[0], signal.SIGKILL)
            stack.start(kind)

    async with Client(stack.url, patience_s=PATIENCE_S) as client:
        result = await rehearse(client, plan, on_turn=on_turn)
    assert result.order_kept
    assert done == len(plan.turns)


@pytest.mark.process
async def test_real_logs_keep_their_order_while_a_worker_is_killed(stack: Any) -> None:
    """All of them, one after the other."""
    files = real_logs()
    if not files:
        pytest.skip("no recorded conversations: set UNDIVIDED_WHO_AND_WHEN to their folder")
    turns = 0

    def on_turn() -> None:
        nonlocal turns
        turns += 1
        if turns == 40:
            os.kill(stack.pids("worker")[0], signal.SIGKILL)
            stack.start("worker")

    async with Client(stack.url, patience_s=PATIENCE_S) as client:
        results = [await rehearse(client, plan_of(file), on_turn=on_turn) for file in files]
    assert all(result.order_kept for result in results)
    assert turns == sum(result.turns for result in results)


async def test_an_agents_history_goes_the_recorded_way(stack: Any) -> None:
    """Against its own recorded responses, on a fresh agent."""
    async with Client(stack.url, patience_s=PATIENCE_S) as client:
        plan = plan_of(EXAMPLE)
        await rehearse(client, plan, "reh_again")
        player = cast_players(plan.agents, "reh_again")["planner"]
        again = await play_again(
            client, player.agent_id, "reh_fresh", PATIENCE_S, lambda _done, _total: None
        )
    assert again.divergence is None
    assert again.turns == sum(turn.agent == "planner" for turn in plan.turns)


async def test_a_tool_taken_away_is_the_first_divergence(stack: Any) -> None:
    """The agent's configuration of today meets its history."""
    async with Client(stack.url, patience_s=PATIENCE_S) as client:
        plan = plan_of(EXAMPLE)
        await rehearse(client, plan, "reh_changed")
        agent_id = cast_players(plan.agents, "reh_changed")["planner"].agent_id
        async with httpx.AsyncClient(base_url=stack.url) as plain:
            answer = await plain.patch(f"/api/agents/{agent_id}", json={"tools": []})
            assert answer.is_success
        again = await play_again(
            client, agent_id, "reh_after", PATIENCE_S, lambda _done, _total: None
        )
    assert again.divergence is not None
    assert again.divergence.turn == 1
    assert again.divergence.what == "result of update_working_memory"
