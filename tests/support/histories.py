"""Good histories of a few agents, made up transaction by transaction.

A `Story` is a small world that only ever does what is right; Hypothesis chooses what it does.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Literal

from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import replace

from tests.support.events import BEGAN
from undivided.domain.coordinates import Coordinate
from undivided.domain.decisions import Decision, DecisionType
from undivided.domain.dialogue import ToolCall, Usage
from undivided.domain.events import flights as f
from undivided.domain.events import items as i
from undivided.domain.events import sessions as s
from undivided.domain.events.agents import AgentCreated
from undivided.domain.events.catalogue import Event
from undivided.domain.outcomes import Completed, Failed
from undivided.domain.placed import Placed
from undivided.domain.policy import DEFAULT_POLICY
from undivided.domain.recorded import (
    Meta,
    Recorded,
    agent_stream,
    session_stream,
    user_stream,
)
from undivided.domain.tooling import Effect
from undivided.domain.waits import Sleep

USAGE = Usage(1, 1, 0, 1)


class Open(Struct):
    """A turn that is open: its item, its calls without a result, and who holds it."""

    turn: str
    item: str
    held: bool = True
    responses: int = 0
    calls: list[tuple[str, Effect, bool]] = []


class Agent(Struct):
    """One agent of a story."""

    id: str
    epoch: int = 0
    live: bool = False
    accepted: int = 0
    waiting: list[str] = []
    open: Open | None = None


class Story:
    """A history in the making; every step is one transaction."""

    def __init__(self) -> None:
        self.history: list[Placed] = []
        self._versions: dict[str, int] = {}
        self._txid = 0
        self.turns = 0

    def write(self, agent_id: str, *events: Event) -> None:
        """Append events about one agent as one transaction, each to the stream it belongs to."""
        self._txid += 3
        for event in events:
            stream = stream_of(agent_id, event)
            version = self._versions.get(stream, 0) + 1
            self._versions[stream] = version
            position = len(self.history) + 1
            at = BEGAN + timedelta(seconds=self._txid)
            recorded = Recorded(f"e{position}", stream, version, event, Meta(), at)
            self.history.append(Placed(Coordinate(self._txid, position), recorded))


def create(story: Story, agent_id: str) -> Agent:
    """An agent and its one session."""
    story.write(
        agent_id,
        AgentCreated(
            agent_id=agent_id, name=agent_id, definition=None, model="default",
            instructions="", tools=None, policy=DEFAULT_POLICY,
        ),
        s.SessionOpened(session_id=agent_id, agent_id=agent_id),
    )  # fmt: skip
    return Agent(agent_id)


def accept(story: Story, agent: Agent) -> None:
    """A stimulus arrives."""
    agent.accepted += 1
    item = f"{agent.id}-item{agent.accepted}"
    agent.waiting.append(item)
    story.write(
        agent.id,
        i.StimulusAccepted(
            agent_id=agent.id, item_id=item, seq=agent.accepted, source_type="human_chat",
            priority=0, payload=i.Payload(f"content of {item}"), sender=i.Sender("u"),
            delivery="queue",
        )
    )  # fmt: skip


def begin(story: Story, agent: Agent) -> None:
    """A worker takes the agent and picks its first item."""
    story.write(agent.id, *_acquire(agent), *_pick(story, agent))


def respond(story: Story, agent: Agent, effects: list[Effect]) -> None:
    """The model answers and asks for a tool call of each of `effects`."""
    turn = agent.open
    assert turn is not None
    ids = [f"{turn.turn}-{turn.responses}-{n}" for n in range(len(effects))]
    turn.calls.extend((call, effect, False) for call, effect in zip(ids, effects, strict=True))
    calls = tuple(ToolCall(call, "tool", {}) for call in ids)
    story.write(
        agent.id,
        s.ModelResponded(
            turn_id=turn.turn, step=turn.responses, text="words", calls=calls, usage=USAGE,
            model="m", epoch=agent.epoch,
        )
    )  # fmt: skip
    turn.responses += 1


def start_call(story: Story, agent: Agent) -> None:
    """The first open call starts, or starts again where its effect allows that."""
    turn = agent.open
    assert turn is not None
    call, effect, started = turn.calls[0]
    if started and effect == "once":
        return finish_call(story, agent)
    turn.calls[0] = (call, effect, True)
    return story.write(
        agent.id,
        s.ToolCallStarted(
            turn_id=turn.turn, call_id=call, tool="tool", args={}, effect=effect,
            idempotency_key=call, epoch=agent.epoch,
        )
    )  # fmt: skip


def finish_call(story: Story, agent: Agent) -> None:
    """The first open call gets its result."""
    turn = agent.open
    assert turn is not None
    call, _, started = turn.calls.pop(0)
    story.write(
        agent.id,
        s.ToolCallFinished(
            turn_id=turn.turn, call_id=call, tool="tool",
            resolution="returned" if started else "skipped", content="", epoch=agent.epoch,
        )
    )  # fmt: skip


def suspend(story: Story, agent: Agent) -> None:
    """The turn waits inside its first open call, and the worker lets go."""
    turn = agent.open
    assert turn is not None
    call, wait, epoch = turn.calls[0][0], Sleep(60), agent.epoch
    story.write(
        agent.id,
        s.TurnSuspended(turn_id=turn.turn, call_id=call, wait=wait, wait_s=60, epoch=epoch),
        f.FocusSuspended(agent_id=agent.id, turn_id=turn.turn, epoch=epoch, wait=wait, wait_s=60),
        _release(agent, "suspended"),
    )
    turn.held = False


def leave(story: Story, agent: Agent) -> None:
    """The worker yields: another one will go on."""
    turn = agent.open
    assert turn is not None
    story.write(
        agent.id,
        s.TurnYielded(turn_id=turn.turn, epoch=agent.epoch),
        _release(agent, "yielded"),
    )
    turn.held = False


def crash(_story: Story, agent: Agent) -> None:
    """The worker dies: nothing is recorded."""
    assert agent.open is not None
    agent.open.held = False


def resume(story: Story, agent: Agent) -> None:
    """A worker takes the agent and goes on with its turn."""
    turn = agent.open
    assert turn is not None
    cause: Literal["orphaned", "yielded"] = "orphaned" if agent.live else "yielded"
    story.write(
        agent.id,
        *_acquire(agent),
        f.FocusRegained(agent_id=agent.id, turn_id=turn.turn, epoch=agent.epoch, cause=cause),
        s.TurnResumed(turn_id=turn.turn, cause=cause, epoch=agent.epoch),
    )
    turn.held = True


def end(story: Story, agent: Agent, fate: str, go_on: bool) -> None:
    """The turn ends with one of the fates of an item; the flight may go on with the next."""
    while agent.open is not None and agent.open.calls:
        finish_call(story, agent)
    turn = agent.open
    assert turn is not None
    names: dict[str, Any] = {"agent_id": agent.id, "item_id": turn.item, "turn_id": turn.turn}
    ended = s.TurnEnded(
        turn_id=turn.turn, session_id=agent.id, agent_id=agent.id, item_ids=(turn.item,),
        outcome=Completed("bye"), usage=USAGE, responses=1, tool_calls=0, epoch=agent.epoch,
    )  # fmt: skip
    events = _fate(story, fate, agent, names)
    agent.open = None
    if fate == "requeue":
        agent.waiting.insert(0, turn.item)
    if go_on and agent.waiting:
        story.write(agent.id, *events, *_pick(story, agent), ended)
    else:
        story.write(agent.id, *events, _release(agent, "done"), ended)


def _pick(story: Story, agent: Agent) -> list[Event]:
    story.turns += 1
    item, turn = agent.waiting.pop(0), f"turn{story.turns}"
    agent.open = Open(turn, item)
    return [
        i.ItemPicked(
            agent_id=agent.id, item_id=item, turn_id=turn, session_id=agent.id,
            epoch=agent.epoch, attempt=1, decision=_decision(story, "pick"),
        ),
        s.TurnStarted(
            turn_id=turn, session_id=agent.id, agent_id=agent.id, item_ids=(item,),
            scenario="chat", origin="human_chat", index=0, responses_before=0,
            input=f"content of {item}", epoch=agent.epoch, backstop_s=60,
        ),
    ]  # fmt: skip


def _fate(story: Story, fate: str, agent: Agent, names: dict[str, Any]) -> list[Event]:
    epoch = agent.epoch
    decision = _decision(story, "requeue")
    match fate:
        case "complete":
            outcome = Completed("bye")
            return [i.ItemCompleted(**names, epoch=epoch, outcome=outcome, decision=decision)]
        case "requeue":
            return [
                i.ItemRequeued(**names, epoch=epoch, reason="failed", wait_s=0, decision=decision)
            ]
        case "cancel":
            return [i.ItemCancelled(**names, by="u", decision=decision)]
        case _:
            reason, notice = Failed("refused", "", False).reason, f"ntf-{names['turn_id']}"
            told = i.NoticePosted(
                notice_id=notice, user_id="owner", agent_id=agent.id,
                item_id=names["item_id"], kind="dead_letter", text="",
            )  # fmt: skip
            dead = i.ItemDeadLettered(
                **names, epoch=epoch, reason=reason, notice_id=notice, decision=decision
            )
            return [told, dead]


def _acquire(agent: Agent) -> list[Event]:
    taken_from = agent.epoch if agent.live else None
    agent.epoch, agent.live = agent.epoch + 1, True
    return [
        f.FlightAcquired(agent_id=agent.id, epoch=agent.epoch, worker="w", taken_from=taken_from)
    ]


def _release(agent: Agent, reason: f.ReleaseReason) -> f.FlightReleased:
    agent.live = False
    return f.FlightReleased(agent_id=agent.id, epoch=agent.epoch, reason=reason)


def _decision(story: Story, kind: DecisionType) -> Decision:
    return Decision(f"dec{len(story.history)}", kind, "rule", "", {}, 1)


def stream_of(agent_id: str, event: Event) -> str:
    """The stream of an event about one agent; its session is called like the agent here."""
    if isinstance(event, i.NoticePosted):
        return user_stream(event.user_id)
    if type(event).__module__.endswith(".sessions"):
        return session_stream(agent_id)
    return agent_stream(agent_id)


ACTIONS: dict[str, Callable[[Story, Agent], None]] = {
    "accept": accept, "begin": begin, "start_call": start_call, "finish_call": finish_call,
    "suspend": suspend, "leave": leave, "crash": crash, "resume": resume,
}  # fmt: skip
FATES = ("complete", "requeue", "cancel", "dead_letter")
EFFECTS: tuple[Effect, ...] = ("pure", "idempotent", "once")


@st.composite
def good_histories(draw: st.DrawFn, steps: int = 25) -> list[Placed]:
    """A history of one to three agents in which everything is as it must be."""
    story = Story()
    agents = [create(story, name) for name in ("a", "b", "c")[: draw(st.integers(1, 3))]]
    for _ in range(draw(st.integers(0, steps))):
        _step(draw, story, draw(st.sampled_from(agents)))
    _tour(story, create(story, "z"))
    return story.history


def _tour(story: Story, agent: Agent) -> None:
    """Everything that can happen, once: no test has to wait for chance."""
    for number, fate in enumerate(FATES):
        accept(story, agent)
        begin(story, agent)
        respond(story, agent, list(EFFECTS))
        for _ in EFFECTS:
            start_call(story, agent)
            finish_call(story, agent)
        (crash, leave)[number % 2](story, agent)
        resume(story, agent)
        respond(story, agent, ["once"])
        suspend(story, agent)
        resume(story, agent)
        end(story, agent, fate, go_on=False)


def _step(draw: st.DrawFn, story: Story, agent: Agent) -> None:
    turn = agent.open
    if turn is None:
        possible = ["accept", *(["begin"] if agent.waiting else [])]
    elif not turn.held:
        possible = ["accept", "resume"]
    elif turn.calls:
        possible = ["accept", "start_call", "finish_call", "suspend", "leave", "crash", "end"]
    else:
        possible = ["accept", "respond", "leave", "crash", "end"]
    match draw(st.sampled_from(possible)):
        case "respond":
            respond(story, agent, draw(st.lists(st.sampled_from(EFFECTS), max_size=3)))
        case "end":
            end(story, agent, draw(st.sampled_from(FATES)), draw(st.booleans()))
        case action:
            ACTIONS[action](story, agent)


def rewritten(history: list[Placed]) -> list[Placed]:
    """The same events with positions and versions counted anew, so that only sense is broken."""
    versions: dict[str, int] = {}
    fresh = []
    for position, placed in enumerate(history, start=1):
        stream = placed.recorded.stream
        versions[stream] = versions.get(stream, 0) + 1
        recorded = replace(placed.recorded, version=versions[stream])
        fresh.append(Placed(Coordinate(placed.coordinate.txid, position), recorded))
    return fresh
