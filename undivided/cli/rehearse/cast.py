"""Who plays a rehearsal: one fresh agent for each speaker, and the recording they answer from."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from undivided.cli.rehearse.plan import Plan, PlannedTurn

NOTES = "update_working_memory"
_LONGEST_SLUG = 60
_LONGEST_NAME = 200


class Player(Struct, frozen=True):
    """The agent that plays a speaker, and the session it plays in."""

    agent_id: str
    session_id: str


def cast_players(speakers: Iterable[str], run: str) -> dict[str, Player]:
    """A player for each speaker; `run` keeps the ids of one rehearsal apart from all others."""
    return {
        speaker: Player(f"{run}.{number}.{slug(speaker)}", f"ses_{run}.{number}")
        for number, speaker in enumerate(speakers, start=1)
    }


def slug(name: str) -> str:
    """A name in the characters that ids may have."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")[:_LONGEST_SLUG] or "agent"


def shown(name: str) -> str:
    """A name as agents and senders may bear it: short, without NUL and lone surrogates."""
    clean = "".join("�" if c == "\x00" or "\ud800" <= c <= "\udfff" else c for c in name)
    return clean.strip()[:_LONGEST_NAME] or "agent"


def recording_of(plan: Plan, players: dict[str, Player]) -> bytes:
    """Every recorded answer of a plan, as `POST /api/recordings` takes it."""
    agents: dict[str, list[dict[str, Any]]] = {p.agent_id: [] for p in players.values()}
    for turn in plan.turns:
        agents[players[turn.agent].agent_id].extend(_responses(turn))
    return json.dumps({"agents": agents}).encode("ascii")


def _responses(turn: PlannedTurn) -> Iterable[dict[str, Any]]:
    if turn.notes:
        notes = [{"key": note.key, "content": note.content} for note in turn.notes]
        yield {"calls": [{"tool": NOTES, "args": note} for note in notes]}
    yield {"reply": turn.reply}
