"""Attention: what an agent turns to, and whether it goes on with it.

Each rule is one pure function with a name, and the name is in the decision that it made.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from undivided.domain.decisions import Decision
from undivided.domain.events.catalogue import Event
from undivided.domain.events.items import ItemPicked, ItemRequeued
from undivided.domain.ids import digest, session_id_of
from undivided.domain.mailbox import summary_of
from undivided.domain.state.agent import AgentRow, Focused, Idle, Suspended
from undivided.domain.state.item import ItemRow, Queued
from undivided.domain.state.view import AgentView
from undivided.domain.stimuli import REGISTRY, StimulusType, stimulus_type
from undivided.domain.waits import Sleep

LOSERS_NAMED = 10


class Begin(Struct, frozen=True):
    """Start a turn about `item`; `over` are the items it was preferred to."""

    item: ItemRow
    over: tuple[ItemRow, ...]


class Carry(Struct, frozen=True):
    """Go on with a turn that lost its worker."""

    turn_id: str
    session_id: str
    cause: Literal["orphaned", "yielded"]


class Wake(Struct, frozen=True):
    """End the wait of a suspended turn; `by` names the type of stimulus that woke it."""

    turn_id: str
    session_id: str
    cause: Literal["waited", "woken", "stopped", "answered"]
    by: str = ""
    answer: str = ""


class Rest(Struct, frozen=True):
    """There is nothing to do now."""


Due = Begin | Carry | Wake | Rest


def what_is_due(view: AgentView, agent: AgentRow) -> Due:
    """What a worker that holds the agent must do first."""
    match agent.attention:
        case Focused(turn_id=turn_id, session_id=session_id):
            held = view.flight is not None and view.flight.held
            return Carry(turn_id, session_id, "orphaned" if held else "yielded")
        case Suspended() as suspended:
            return _end_of_wait(suspended, view)
        case Idle():
            return choose(agent, known_only(view.queue))


def choose(agent: AgentRow, queue: tuple[ItemRow, ...]) -> Begin | Rest:
    """Rule `priority_fifo`: the lowest priority number first, then the oldest."""
    if agent.lifecycle != "started" or not queue:
        return Rest()
    first, *others = sorted(queue, key=lambda item: (item.priority, item.seq))
    return Begin(first, tuple(others))


def _end_of_wait(suspended: Suspended, view: AgentView) -> Wake | Rest:
    turn = suspended.turn_id, suspended.session_id
    if suspended.stop_by is not None:
        return Wake(*turn, "stopped")
    if suspended.answer is not None:
        return Wake(*turn, "answered", answer=suspended.answer)
    if view.now >= suspended.until:
        return Wake(*turn, "waited")
    if not isinstance(suspended.wait, Sleep):
        return Rest()
    wakers = [item for item in known_only(view.queue) if kind_of(item).wakes]
    if wakers:
        return Wake(*turn, "woken", wakers[0].source_type)
    return Rest()


def resolution_of(wake: Wake) -> Literal["waited", "woken", "skipped", "answered"]:
    """How the call that waited is resolved."""
    match wake.cause:
        case "waited":
            return "waited"
        case "woken":
            return "woken"
        case "answered":
            return "answered"
        case "stopped":
            return "skipped"


def told_after_wait(wake: Wake) -> str:
    """What the model reads as the result; what woke it is named, its content is not."""
    match wake.cause:
        case "waited":
            return "the wait is over"
        case "woken":
            return f"woken early by a new {wake.by}, which waits in the mailbox"
        case "answered":
            return wake.answer
        case "stopped":
            return "not waited for: the turn was asked to stop"


def kind_of(item: ItemRow) -> StimulusType:
    """The registry's entry of an item's type; one that a newer release brought is unknown here.

    Raises:
        Invalid: the type is unknown; the item is left where it is.
    """
    return stimulus_type(item.source_type)


def known_only(queue: tuple[ItemRow, ...]) -> tuple[ItemRow, ...]:
    """The items whose type this release knows; others wait for a worker that does."""
    return tuple(item for item in queue if item.source_type in REGISTRY)


def session_for(agent: AgentRow, item: ItemRow) -> str:
    """The session a turn about `item` belongs to: as asked, else by its type's scenario."""
    if item.session_id is not None:
        return item.session_id
    kind = kind_of(item)
    channel = item.payload.extra.get("channelKey")
    if kind.scenario == "chat":
        return chat_session(agent.id)
    if isinstance(channel, str):
        return session_id_of(("ses", "channel", channel, agent.id))
    return session_id_of(("ses", kind.scenario, agent.id, item.id))


def chat_session(agent_id: str) -> str:
    """The session in which people talk with an agent, unless they ask for another."""
    return session_id_of(("ses", agent_id))


def new_session(agent: AgentRow, item: ItemRow) -> str:
    """The session of a turn whose own was archived or deleted: a conversation of its own.

    Each attempt has another, for the last one's may have been archived meanwhile.
    """
    attempt = str(item.tries.picked + 1)
    return session_id_of(("ses", agent.id, item.id, digest((agent.id, item.id, attempt))))


def own_session(agent: AgentRow, item: ItemRow) -> str:
    """The session of a turn whose named session belongs to another agent.

    The digest keeps it apart from every name that an agent or a caller may have chosen.
    """
    named = item.session_id or item.id
    return session_id_of(("ses", agent.id, named, digest((agent.id, named))))


def input_of(item: ItemRow) -> str:
    """What a turn about `item` is told, as the newest user-role content of its session."""
    return item.payload.content


def as_requeued(item: ItemRow, event: Event) -> ItemRow:
    """`item` as it waits after `event` put it back, for choosing in the same transaction."""
    return replace(item, phase=Queued()) if isinstance(event, ItemRequeued) else item


class Taken(Struct, frozen=True):
    """Fresh names for a pick."""

    turn_id: str
    decision_id: str
    epoch: int


def picked(agent: AgentRow, begin: Begin, session_id: str, taken: Taken) -> ItemPicked:
    """The decision to turn to an item, with what it saw and what it passed over."""
    item, kind = begin.item, kind_of(begin.item)
    attempt = item.tries.picked + 1
    return ItemPicked(
        agent_id=agent.id,
        item_id=item.id,
        turn_id=taken.turn_id,
        session_id=session_id,
        epoch=taken.epoch,
        attempt=attempt,
        decision=Decision(
            taken.decision_id,
            "pick",
            "priority_fifo",
            f"{kind.label} is the best of {len(begin.over) + 1} waiting, by priority and age",
            {
                "priority": item.priority,
                "seq": item.seq,
                "attempt": attempt,
                "waiting": agent.waiting,
                "activity": kind.activity or "internal",
                "summary": summary_of(item.payload)[:120],
            },
            agent.policy_version,
            tuple(other.id for other in begin.over[:LOSERS_NAMED]),
        ),
    )


class GoOn(Struct, frozen=True):
    """The turn keeps the focus."""


class Halt(Struct, frozen=True):
    """The turn ends here because `by` asked for it."""

    by: str


class Leave(Struct, frozen=True):
    """The worker is leaving; the turn goes on elsewhere."""


def at_yield_point(agent: AgentRow, turn_id: str, draining: bool) -> GoOn | Halt | Leave:
    """Between two steps: does the turn go on here? Interrupts join as further rules."""
    focus = agent.attention
    if isinstance(focus, Focused) and focus.turn_id == turn_id and focus.stop_by is not None:
        return Halt(focus.stop_by)
    return Leave() if draining else GoOn()
