"""Attention: what an agent turns to, and whether it goes on with it.

Each rule is one pure function with a name, and the name is in the decision that it made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from undivided.domain.decisions import Decision
from undivided.domain.deliberation_prompt import batch_prompt
from undivided.domain.events.catalogue import Event
from undivided.domain.events.flights import StopRequested
from undivided.domain.events.items import (
    ItemPicked,
    ItemRequeued,
    ItemResumed,
    ItemResurfaced,
)
from undivided.domain.ids import digest, session_id_of
from undivided.domain.mailbox import summary_of
from undivided.domain.merging import composed
from undivided.domain.state.agent import AgentRow, Focused, Idle, Suspended
from undivided.domain.state.item import Deferred, ItemRow, Queued
from undivided.domain.state.view import AgentView
from undivided.domain.stimuli import REGISTRY, StimulusType, stimulus_type
from undivided.domain.waits import Sleep

LOSERS_NAMED = 10


class Begin(Struct, frozen=True):
    """Turn to `item`, and with it to `siblings`; `over` are the items it was preferred to.

    A turn that was set aside with the item goes on; else one is started.
    """

    item: ItemRow
    over: tuple[ItemRow, ...]
    rule: str = "priority_fifo"
    siblings: tuple[ItemRow, ...] = ()
    batch_context: str = ""
    decision: Decision | None = None
    """What chose it, where that is recorded already."""

    @property
    def comes_back(self) -> bool:
        """Whether a turn was set aside with the item."""
        phase = self.item.phase
        return isinstance(phase, Queued) and phase.turn_id is not None

    @property
    def items(self) -> tuple[ItemRow, ...]:
        """All items of the turn, the primary first."""
        return (self.item, *self.siblings)


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
            return choose(agent, ready(view.queue, view.now))


def ready(queue: tuple[ItemRow, ...], now: datetime) -> tuple[ItemRow, ...]:
    """The items of known types that may be picked now."""
    return tuple(item for item in known_only(queue) if _is_ready(item, now))


def ready_then(
    view: AgentView,
    requeued: Sequence[tuple[ItemRow, Event]],
    back: Sequence[ItemResurfaced],
) -> tuple[ItemRow, ...]:
    """What may be picked once the append at hand has put items back into the queue.

    `requeued` are items each with the event about it, `back` those that are put off no longer.
    """
    again = [
        replace(item, phase=Queued(since=view.now))
        for item, event in requeued
        if isinstance(event, ItemRequeued)
    ]
    ids = {event.item_id for event in back}
    for item in view.deferred:
        if item.id in ids and isinstance(phase := item.phase, Deferred):
            began = Queued(turn_id=phase.turn_id, session_id=phase.session_id, since=view.now)
            again.append(replace(item, phase=began))
    return (*ready(view.queue, view.now), *again)


def _is_ready(item: ItemRow, now: datetime) -> bool:
    phase = item.phase
    return isinstance(phase, Queued) and (phase.not_before is None or phase.not_before <= now)


def unweighed(view: AgentView, turn_id: str) -> tuple[ItemRow, ...]:
    """The items that may be picked now and were not weighed against this turn as they are."""
    return tuple(
        item
        for item in ready(view.queue, view.now)
        if item.weighed is None
        or item.weighed.turn_id != turn_id
        or item.weighed.merged != item.merged
    )


def resurfacing(view: AgentView, agent: AgentRow) -> tuple[ItemResurfaced, ...]:
    """Which deferred items wait again, for an agent that is idle.

    Those whose time has come; and those without a time, if nothing else can be picked.
    """
    if agent.lifecycle != "started" or not isinstance(agent.attention, Idle):
        return ()
    due = tuple(
        ItemResurfaced(agent_id=agent.id, item_id=item.id, cause="due")
        for item in view.deferred
        if isinstance(item.phase, Deferred)
        and item.phase.until is not None
        and item.phase.until <= view.now
    )
    if due or ready(view.queue, view.now):
        return due
    return tuple(
        ItemResurfaced(agent_id=agent.id, item_id=item.id, cause="idle")
        for item in view.deferred
        if isinstance(item.phase, Deferred) and item.phase.until is None and not item.phase.waits
    )


def with_siblings(agent: AgentRow, items: tuple[ItemRow, ...]) -> tuple[ItemResurfaced, ...]:
    """What else of a turn that was set aside is still put off: it comes back with the first."""
    return tuple(
        ItemResurfaced(agent_id=agent.id, item_id=item.id, cause="answered")
        for item in items
        if isinstance(item.phase, Deferred)
    )


def asked_to_stop(
    agent: AgentRow, turn_id: str, items: tuple[ItemRow, ...]
) -> tuple[StopRequested, ...]:
    """The stop that was asked for while the turn was set aside."""
    phases = (item.phase for item in items)
    asked = [p.stop_by for p in phases if isinstance(p, Deferred | Queued) and p.stop_by]
    return tuple(StopRequested(agent_id=agent.id, turn_id=turn_id, by=by) for by in asked[:1])


def resurfacing_after(view: AgentView, agent: AgentRow) -> bool:
    """Whether something deferred is to wait again once the turn at work is over."""
    return bool(resurfacing(view, replace(agent, attention=Idle(view.now))))


def after_preemptor(
    agent: AgentRow, deferred: tuple[ItemRow, ...], over: frozenset[str]
) -> tuple[ItemResurfaced, ...]:
    """The deferred items that come back because the items `over`, which they let pass, are over."""
    return tuple(
        ItemResurfaced(agent_id=agent.id, item_id=item.id, cause="preemptor_done")
        for item in deferred
        if isinstance(item.phase, Deferred) and item.phase.behind in over
    )


def choose(agent: AgentRow, queue: tuple[ItemRow, ...]) -> Begin | Rest:
    """Rule `priority_fifo`: the lowest priority number first, then the oldest."""
    if agent.lifecycle != "started" or not queue:
        return Rest()
    queue = tuple({item.id: item for item in queue}.values())
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


def kind_of(item: ItemRow) -> StimulusType:
    """The registry's entry of an item's type; one that a newer release brought is unknown here.

    Raises:
        Invalid: the type is unknown; the item is left where it is.
    """
    return stimulus_type(item.source_type)


def activity_of(item: ItemRow) -> str:
    """The kind of activity that a turn about an item is: as its type says, else by what is done."""
    kind = kind_of(item)
    if kind.activity is not None:
        return kind.activity
    if kind.is_comment:
        return "chat"
    begun = kind.invoked_by is not None and item.payload.extra.get(kind.invoked_by)
    return kind.scenario if begun else "internal"


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
        return channel_session(agent.id, channel)
    return session_id_of(("ses", kind.scenario, agent.id, item.id))


def chat_session(agent_id: str) -> str:
    """The session in which people talk with an agent, unless they ask for another."""
    return session_id_of(("ses", agent_id))


def channel_session(agent_id: str, channel: str) -> str:
    """The session in which an agent takes part in a channel."""
    return session_id_of(("ses", "channel", channel, agent_id))


def deliberation_session(agent_id: str, turn_id: str) -> str:
    """The session of one deliberation: each begins with nothing but what waits."""
    return session_id_of(("ses", "deliberation", agent_id, turn_id))


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


def input_of(begin: Begin, joined: Mapping[str, tuple[ItemRow, ...]]) -> str:
    """What a turn is told: its item with what has joined it, or all the items of a batch."""
    if begin.siblings:
        return batch_prompt(begin.items, joined, begin.batch_context)
    return composed(begin.item, joined[begin.item.id]).content


class Taken(Struct, frozen=True):
    """Fresh names for a pick: the turn's, and those of one decision an item."""

    turn_id: str
    decision_ids: tuple[str, ...]
    epoch: int


def picked(agent: AgentRow, begin: Begin, session_id: str, taken: Taken) -> tuple[ItemPicked, ...]:
    """The decision to turn to an item and its siblings, with what it saw and passed over."""
    names = zip(begin.items, taken.decision_ids, strict=True)
    return tuple(
        ItemPicked(
            agent_id=agent.id, item_id=item.id, turn_id=taken.turn_id, session_id=session_id,
            epoch=taken.epoch, attempt=item.tries.picked + 1,
            decision=_pick(agent, begin, item, name),
            batch_of=None if item.id == begin.item.id else begin.item.id,
        )
        for item, name in names
    )  # fmt: skip


def resumed(
    agent: AgentRow, begin: Begin, session_id: str, taken: Taken
) -> tuple[ItemResumed, ...]:
    """The decision to go on with a turn that was set aside."""
    names = zip(begin.items, taken.decision_ids, strict=True)
    return tuple(
        ItemResumed(
            agent_id=agent.id, item_id=item.id, turn_id=taken.turn_id, session_id=session_id,
            epoch=taken.epoch, decision=_pick(agent, begin, item, name),
        )
        for item, name in names
    )  # fmt: skip


def _pick(agent: AgentRow, begin: Begin, item: ItemRow, decision_id: str) -> Decision:
    """The decision; one that is made already is carried out, with what it is about told."""
    kind = kind_of(item)
    inputs: dict[str, str | int | float | bool | None] = {
        "priority": item.priority,
        "seq": item.seq,
        "attempt": item.tries.picked + (not begin.comes_back),
        "waiting": agent.waiting,
        "activity": activity_of(begin.item),
        "summary": summary_of(item.payload)[:120],
        "batch": len(begin.items),
    }
    if item.id != begin.item.id:  # the activity of a batch is that of its first item
        about = summary_of(begin.item.payload)[:120]
        inputs["batchSummary"] = about
    if begin.decision is not None:
        return replace(begin.decision, inputs={**begin.decision.inputs, **inputs})
    return Decision(
        decision_id, "pick", begin.rule, _reason(begin, item, kind), inputs,
        agent.policy_version, tuple(other.id for other in begin.over[:LOSERS_NAMED]),
    )  # fmt: skip


def _reason(begin: Begin, item: ItemRow, kind: StimulusType) -> str:
    if item.id != begin.item.id:
        return f"{kind.label} is handled together with {begin.item.id}"
    if begin.comes_back:
        return f"{kind.label} was preempted and goes on where it stopped"
    if begin.rule == "preemptor_first":
        return f"{kind.label} preempted what was at work, and is next"
    return f"{kind.label} is the best of {len(begin.over) + 1} waiting, by priority and age"


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
