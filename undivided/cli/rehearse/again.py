"""An existing agent's history once more, on fresh agents, against its recorded model responses.

Each session of the agent is played by a fresh agent with the same configuration. It receives
the same stimuli, its model answers what was recorded, its tools really run; so whatever
differs comes from changed prompts, tools or code. The first difference of each session is the
divergence. A turn that failed, was stopped or has not ended is passed over: what broke it off is
no model's answer, and would not come again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from itertools import zip_longest
from typing import Any

from msgspec import Struct

from undivided.cli.client import Client, route
from undivided.cli.readers.own_export import (
    HEADER,
    VERSION,
    Accepted,
    Export,
    RecordedTurn,
    Responded,
    read_export,
)
from undivided.cli.readers.source import Entry, Source
from undivided.cli.rehearse.cast import slug
from undivided.cli.rehearse.drive import NotFinished, deliver

_ANSWERED = frozenset({"completed", "incomplete"})
_KEPT = ("instructions", "tools", "policy", "definition")


class Divergence(Struct, frozen=True, rename="camel"):
    """The first place where history, played again, went another way; turns count from 1."""

    session_id: str
    turn: int
    what: str
    recorded: str
    now: str


class Replayed(Struct, frozen=True, rename="camel"):
    """What came of playing an agent's history again."""

    agent_id: str
    turns: int
    divergence: Divergence | None


async def recorded_history(client: Client, agent_id: str) -> Export:
    """Every turn of an agent, read from its own and its sessions' events."""
    sessions = [s["id"] async for s in client.pages("/sessions", agentId=agent_id)]
    streams = (f"agent:{agent_id}", *(f"session:{session}" for session in sessions))
    return await _export(client, agent_id, streams)


async def _export(client: Client, name: str, streams: Iterable[str]) -> Export:
    lines = [Entry("header", {HEADER: VERSION})]
    for stream in streams:
        events = client.pages("/events", stream=stream)
        lines += [Entry(f"event {event['id']}", event) async for event in events]
    return read_export(Source(name, lines=tuple(lines)))


async def play_again(
    client: Client,
    agent_id: str,
    run: str,
    patience_s: float,
    on_turn: Callable[[int, int], None],
) -> Replayed:
    """Play every session of an agent again and compare; stops at the first divergence."""
    configuration = await client.get(route("agents", agent_id))
    export = await recorded_history(client, agent_id)
    sessions = by_session(export)
    done, total = 0, sum(len(turns) for turns in sessions.values())
    for number, (session_id, turns) in enumerate(sessions.items(), start=1):
        fresh = f"{run}.{number}.{slug(agent_id)}"
        await _hire(client, fresh, configuration, turns)
        again = await _play(client, fresh, turns, patience_s)
        done += len(turns)
        on_turn(done, total)
        if divergence := first_divergence(session_id, turns, again):
            return Replayed(agent_id, done, divergence)
    return Replayed(agent_id, done, None)


def by_session(export: Export) -> dict[str, list[RecordedTurn]]:
    """The turns of each session that models brought to an end, in order."""
    sessions: dict[str, list[RecordedTurn]] = {}
    for turn in export.turns:
        if turn.outcome in _ANSWERED:
            sessions.setdefault(turn.started.session_id, []).append(turn)
    return sessions


async def _hire(
    client: Client, fresh: str, configuration: dict[str, Any], turns: list[RecordedTurn]
) -> None:
    responses = [answer for turn in turns for answer in recorded_answers(turn)]
    content = json.dumps({"agents": {fresh: responses}}).encode("ascii")
    recording = await client.post_raw("/recordings", content, key=f"{fresh}.recording")
    body = {name: configuration[name] for name in _KEPT if configuration.get(name) is not None}
    body |= {
        "id": fresh,
        "name": configuration["name"],
        "model": f"rehearsal:recording:{recording['id']}",
    }
    await client.post("/agents", body, key=f"{fresh}.created")


def recorded_answers(turn: RecordedTurn) -> Iterator[dict[str, Any]]:
    """A turn's model responses as a recording holds them, each bound to what it answered."""
    for response in turn.responses():
        calls = [{"tool": call.tool, "args": call.args} for call in response.calls]
        yield {"expect": turn.started.input, "reply": response.text, "calls": calls}


async def _play(
    client: Client, fresh: str, turns: list[RecordedTurn], patience_s: float
) -> list[RecordedTurn]:
    session_id = f"ses_{fresh}"
    items = {stimulus.item_id: stimulus for turn in turns for stimulus in turn.stimuli}
    for number, stimulus in enumerate(items.values(), start=1):
        body = delivery(stimulus, session_id)
        try:
            await deliver(client, fresh, body, f"{fresh}.{number}", patience_s)
        except NotFinished:
            break  # the comparison says where it went another way
    streams = (f"agent:{fresh}", f"session:{session_id}")
    return list((await _export(client, fresh, streams)).turns)


def delivery(stimulus: Accepted, session_id: str) -> dict[str, Any]:
    """The body that delivers a recorded stimulus once more."""
    payload, sender = stimulus.payload, stimulus.sender
    said = {
        "content": payload.content,
        "summary": payload.summary or None,
        "taskId": payload.task_id,
        "requirementId": payload.requirement_id,
        "extra": payload.extra or None,
    }
    who = {"senderId": sender.id, "senderName": sender.name, "senderRole": sender.role}
    body: dict[str, Any] = {
        "sourceType": stimulus.source_type,
        "payload": {name: value for name, value in said.items() if value is not None},
        "metadata": {name: value for name, value in who.items() if value is not None},
        "sessionId": session_id,
    }
    return body if stimulus.priority is None else body | {"priority": stimulus.priority}


def first_divergence(
    session_id: str, recorded: list[RecordedTurn], now: list[RecordedTurn]
) -> Divergence | None:
    """Where two tellings of a session part, step by step."""
    for number, (before, after) in enumerate(zip_longest(recorded, now), start=1):
        for was, is_ in zip_longest(_told(before), _told(after), fillvalue=("nothing", "")):
            if was != is_:
                return Divergence(session_id, number, was[0], was[1] or was[0], is_[1] or is_[0])
    return None


def _told(turn: RecordedTurn | None) -> list[tuple[str, str]]:
    if turn is None:
        return []
    told = [("input", turn.started.input)]
    for step in turn.steps:
        if isinstance(step, Responded):
            calls = [[call.tool, call.args] for call in step.calls]
            told.append(("answer", json.dumps([step.text, *calls], ensure_ascii=False)))
        else:
            told.append((f"result of {step.tool}", step.content))
    return [*told, ("outcome", turn.outcome)]
