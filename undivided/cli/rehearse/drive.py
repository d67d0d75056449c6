"""A rehearsal on the running service, over its HTTP API alone.

Turns run one after the other: a message is delivered, and the next one only when the turn it
started is over. Everything sent carries an idempotency key, so that whatever a killed API or
worker left open is simply sent or asked again, for as long as the client has patience. At the
end each agent's session is read back and compared with the recording.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from undivided.cli.client import Client, Patience, route
from undivided.cli.rehearse.cast import NOTES, Player, cast_players, recording_of, shown, slug
from undivided.cli.rehearse.plan import Plan, PlannedTurn, Stimulus
from undivided.domain.stimuli import REGISTRY

TERMINAL = frozenset({"completed", "cancelled", "merged", "dropped", "superseded", "dead_letter"})

_FIRST_LOOK_S, _LONGEST_LOOK_S = 0.01, 0.5


class Rehearsed(Struct, frozen=True, rename="camel"):
    """What came of a rehearsal; `order_kept` when every message stands once and in order."""

    messages: int
    agents: int
    turns: int
    wall_s: float
    order_kept: bool


class NotFinished(Exception):
    """A turn that did not end well; the sentence says which and how."""


async def drive(
    client: Client, plan: Plan, run: str, patience_s: float, on_turn: Callable[[], None]
) -> tuple[Rehearsed, str]:
    """Rehearse a plan; the text is what went wrong, empty where the order was kept."""
    clock = asyncio.get_running_loop().time
    begun = clock()
    players = cast_players(plan.agents, run)
    turns = 0
    try:
        await _hire(client, plan, players, run)
        for turns, turn in enumerate(plan.turns, start=1):
            body = delivery(turn.stimulus, players[turn.agent], players)
            await deliver(client, players[turn.agent].agent_id, body, f"{run}.{turns}", patience_s)
            on_turn()
        trouble = await _read_back(client, plan, players)
    except NotFinished as error:
        trouble = f"turn {turns} of {len(plan.turns)}: {error}"
    wall_s = round(clock() - begun, 3)
    return Rehearsed(plan.messages, len(players), turns, wall_s, not trouble), trouble


async def _hire(client: Client, plan: Plan, players: dict[str, Player], run: str) -> None:
    content = recording_of(plan, players)
    recording = await client.post_raw("/recordings", content, key=f"{run}.recording")
    for speaker, player in players.items():
        body = {
            "id": player.agent_id,
            "name": shown(speaker),
            "model": f"rehearsal:recording:{recording['id']}",
            "tools": [NOTES],
        }
        await client.post("/agents", body, key=f"{player.agent_id}.created")


def delivery(stimulus: Stimulus, to: Player, players: dict[str, Player]) -> dict[str, Any]:
    """The body that puts a stimulus into a player's mailbox."""
    role = REGISTRY[stimulus.source_type].sender
    sender: dict[str, str] = {"senderRole": role}
    if stimulus.sender:
        known = players.get(stimulus.sender) if role == "agent" else None
        sender["senderId"] = known.agent_id if known else slug(stimulus.sender)
        sender["senderName"] = shown(stimulus.sender)
    return {
        "sourceType": stimulus.source_type,
        "payload": {"content": stimulus.content},
        "metadata": sender,
        "sessionId": to.session_id,
    }


async def deliver(
    client: Client, agent_id: str, body: dict[str, Any], key: str, patience_s: float
) -> None:
    """Put one stimulus into a mailbox and wait until it is over; raises NotFinished."""
    accepted = await client.post(route("agents", agent_id, "mailbox"), body, key=key)
    item = await _over(client, accepted["itemId"], patience_s)
    if item["status"] != "completed":
        outcome = item.get("outcome") or "no outcome"
        raise NotFinished(f"item {item['id']} of {agent_id} is {item['status']} ({outcome})")


async def _over(client: Client, item_id: str, patience_s: float) -> dict[str, Any]:
    pause_s, patience = _FIRST_LOOK_S, Patience(patience_s)
    while True:
        item: dict[str, Any] = await client.get(route("items", item_id))
        if item["status"] in TERMINAL:
            return item
        still = f"item {item_id} is still {item['status']} after {patience_s:g} s"
        await patience.wait(NotFinished(f"{still}; is a worker running?"), pause_s)
        pause_s = min(pause_s * 1.5, _LONGEST_LOOK_S)


async def _read_back(client: Client, plan: Plan, players: dict[str, Player]) -> str:
    for speaker, player in players.items():
        path = route("sessions", player.session_id, "messages")
        said = [message async for message in client.pages(path, visibility="all")]
        turns = [turn for turn in plan.turns if turn.agent == speaker]
        if trouble := compare(turns, said):
            return f"session {player.session_id} of {speaker}: {trouble}"
    return ""


def compare(turns: Sequence[PlannedTurn], said: Sequence[dict[str, Any]]) -> str:
    """What a session's messages have otherwise than the recording; empty when nothing."""
    heard = [m["content"] for m in said if m["role"] == "user"]
    spoken = [m["content"] for m in said if m["role"] == "assistant" and not m.get("toolCalls")]
    if len(spoken) != len(turns) or len(heard) != len(turns):
        return f"{len(heard)} heard and {len(spoken)} spoken where {len(turns)} of each belong"
    for number, (turn, input_, reply) in enumerate(zip(turns, heard, spoken, strict=True), 1):
        if turn.stimulus.content not in input_:
            return f"message {number} heard is not the recorded one"
        if turn.reply != reply:
            return f"message {number} spoken is not the recorded one"
    return ""
