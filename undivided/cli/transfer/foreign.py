"""A conversation that somebody else recorded as a history of ours.

Each speaker is an agent with one session; each message reaches the next speaker's mailbox, is
picked, answered and completed there, as a rehearsal would do it (`rehearse/plan.py`), but by
nobody: the events say that they were imported. Times are a millisecond apart, for a recording
without times has only an order.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from hashlib import sha256
from uuid import UUID

from msgspec import Struct

from undivided.cli.rehearse.cast import NOTES, Player, cast_players, shown
from undivided.cli.rehearse.plan import Plan, PlannedTurn
from undivided.domain.decisions import Decision
from undivided.domain.dialogue import ToolCall, Usage
from undivided.domain.events import agents as a
from undivided.domain.events import flights as f
from undivided.domain.events import items as i
from undivided.domain.events import sessions as s
from undivided.domain.events.catalogue import Event
from undivided.domain.mailbox import summary_of
from undivided.domain.outcomes import Completed
from undivided.domain.policy import DEFAULT_POLICY
from undivided.domain.recorded import Meta, Recorded, agent_stream, session_stream
from undivided.domain.stimuli import REGISTRY

RULE = "imported"
WORKER = "import"
MODEL = "default"
_BACKSTOP_S = DEFAULT_POLICY.processing_timeout_s


class _Life(Struct):
    """An agent so far."""

    player: Player
    name: str
    turns: int = 0
    responses: int = 0


class _Turn(Struct, frozen=True):
    """One planned turn of one life, with the names of what it brings into being."""

    life: _Life
    plan: PlannedTurn
    key: str

    @property
    def agent(self) -> str:
        """The agent's id."""
        return self.life.player.agent_id

    @property
    def epoch(self) -> int:
        """A flight for every turn."""
        return self.life.turns + 1


def conversation_history(plan: Plan, run: str, begin: datetime) -> Iterator[list[Recorded]]:
    """The transactions of a conversation; `run` keeps its ids apart from all others."""
    lives = {
        speaker: _Life(player, shown(speaker))
        for speaker, player in cast_players(plan.agents, run).items()
    }
    writer = _Writer(run, begin)
    for life in lives.values():
        yield writer.transaction(life, _born(life))
    for number, planned in enumerate(plan.turns, start=1):
        turn = _Turn(lives[planned.agent], planned, f"{run}.{number}")
        for events in _turn(turn):
            yield writer.transaction(turn.life, events)
        turn.life.turns += 1
        turn.life.responses += 1 + bool(planned.notes)


class _Writer:
    """Numbers events and gives them ids and times."""

    def __init__(self, run: str, begin: datetime) -> None:
        self._run, self._at, self._count = run, begin, 0
        self._versions: dict[str, int] = {}

    def transaction(self, life: _Life, events: tuple[Event, ...]) -> list[Recorded]:
        self._at += timedelta(milliseconds=1)
        return [self._recorded(life, event) for event in events]

    def _recorded(self, life: _Life, event: Event) -> Recorded:
        in_session = type(event).__module__ == s.__name__
        player = life.player
        stream = session_stream(player.session_id) if in_session else agent_stream(player.agent_id)
        version = self._versions[stream] = self._versions.get(stream, 0) + 1
        self._count += 1
        digest = sha256(f"{self._run}\0{self._count}".encode()).digest()[:16]
        meta = Meta(actor=WORKER)
        return Recorded(str(UUID(bytes=digest, version=4)), stream, version, event, meta, self._at)


def _born(life: _Life) -> tuple[Event, ...]:
    player = life.player
    return (
        a.AgentCreated(
            agent_id=player.agent_id, name=life.name, definition=None, model=MODEL,
            instructions="", tools=None, policy=DEFAULT_POLICY,
        ),
        s.SessionOpened(session_id=player.session_id, agent_id=player.agent_id),
    )  # fmt: skip


def _turn(turn: _Turn) -> Iterator[tuple[Event, ...]]:
    yield (_accepted(turn),)
    yield _begun(turn)
    yield from _noted(turn)
    yield _ended(turn)


def _accepted(turn: _Turn) -> i.StimulusAccepted:
    stimulus = turn.plan.stimulus
    kind = REGISTRY[stimulus.source_type]
    sender = i.Sender(name=shown(stimulus.sender) if stimulus.sender else None, role=kind.sender)
    return i.StimulusAccepted(
        agent_id=turn.agent, item_id=f"mbx_{turn.key}", seq=turn.life.turns + 1,
        source_type=kind.name, priority=kind.priority, payload=i.Payload(stimulus.content),
        sender=sender, delivery="queue", session_id=turn.life.player.session_id,
    )  # fmt: skip


def _begun(turn: _Turn) -> tuple[Event, ...]:
    stimulus, life = turn.plan.stimulus, turn.life
    kind = REGISTRY[stimulus.source_type]
    inputs: dict[str, str | int | float | bool | None] = {
        "activity": kind.activity or "internal",
        "summary": summary_of(i.Payload(stimulus.content))[:120],
    }
    return (
        f.FlightAcquired(agent_id=turn.agent, epoch=turn.epoch, worker=WORKER),
        i.ItemPicked(
            agent_id=turn.agent, item_id=f"mbx_{turn.key}", turn_id=f"trn_{turn.key}",
            session_id=life.player.session_id, epoch=turn.epoch, attempt=1,
            decision=Decision(
                f"dec_{turn.key}.1", "pick", RULE, "it was next in the recording", inputs, 1
            ),
        ),
        s.TurnStarted(
            turn_id=f"trn_{turn.key}", session_id=life.player.session_id, agent_id=turn.agent,
            item_ids=(f"mbx_{turn.key}",), scenario=kind.scenario, origin=kind.name,
            index=life.turns, responses_before=life.responses, input=stimulus.content,
            epoch=turn.epoch, backstop_s=_BACKSTOP_S,
        ),
    )  # fmt: skip


def _noted(turn: _Turn) -> Iterator[tuple[Event, ...]]:
    """A response that writes down what was thought, and each note as the tool's result."""
    if not turn.plan.notes:
        return
    calls = tuple(
        ToolCall(f"call_{turn.key}.{number}", NOTES, {"key": note.key, "content": note.content})
        for number, note in enumerate(turn.plan.notes)
    )
    yield (_response(turn, 0, "", calls),)
    for call, note in zip(calls, turn.plan.notes, strict=True):
        yield (
            s.ToolCallStarted(
                turn_id=f"trn_{turn.key}", call_id=call.id, tool=NOTES, args=call.args,
                effect="idempotent", idempotency_key=f"trn_{turn.key}:{call.id}",
                epoch=turn.epoch,
            ),
        )  # fmt: skip
        yield (
            a.MemoryNoted(
                agent_id=turn.agent, key=note.key, content=note.content,
                turn_id=f"trn_{turn.key}",
            ),
            s.ToolCallFinished(
                turn_id=f"trn_{turn.key}", call_id=call.id, tool=NOTES, resolution="returned",
                content="noted", epoch=turn.epoch,
            ),
        )  # fmt: skip


def _ended(turn: _Turn) -> tuple[Event, ...]:
    notes, outcome = turn.plan.notes, Completed(turn.plan.reply)
    responses = 1 + bool(notes)
    return (
        i.ItemCompleted(
            agent_id=turn.agent, item_id=f"mbx_{turn.key}", turn_id=f"trn_{turn.key}",
            epoch=turn.epoch, outcome=outcome,
            decision=Decision(
                f"dec_{turn.key}.2", "complete", RULE, "it was answered in the recording", {}, 1
            ),
        ),
        f.FlightReleased(agent_id=turn.agent, epoch=turn.epoch, reason="done"),
        _response(turn, responses - 1, turn.plan.reply, ()),
        s.TurnEnded(
            turn_id=f"trn_{turn.key}", session_id=turn.life.player.session_id,
            agent_id=turn.agent, item_ids=(f"mbx_{turn.key}",), outcome=outcome,
            usage=Usage(requests=responses), responses=responses, tool_calls=len(notes),
            epoch=turn.epoch,
        ),
    )  # fmt: skip


def _response(turn: _Turn, step: int, text: str, calls: tuple[ToolCall, ...]) -> s.ModelResponded:
    return s.ModelResponded(
        turn_id=f"trn_{turn.key}", step=step, text=text, calls=calls, usage=Usage(requests=1),
        model=RULE, epoch=turn.epoch,
    )  # fmt: skip
