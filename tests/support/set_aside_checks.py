"""What must be true of an agent whose turns wait, are set aside, and are shown what has come."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.support.patient import Patient
from undivided.domain.events import flights as f
from undivided.domain.events import people as p
from undivided.domain.events import sessions as s
from undivided.domain.outcomes import Cancelled, Interrupted
from undivided.domain.state.agent import Idle, Suspended
from undivided.domain.state.item import Deferred, Done, ItemRow, Merged, Queued
from undivided.domain.state.session import TurnOver, TurnRow, TurnRunning, TurnSetAside, TurnWaiting

NAMED = re.compile(r"<(mbx_\d+)>")
"""Every stimulus of these tests says its own name."""


def turns_of(town: Patient) -> Iterator[TurnRow]:
    """Every turn there ever was."""
    return (row for (table, _), row in town.rows.items() if table == "turns")


def check_turns(town: Patient, who: str) -> None:
    """A turn is in focus, over, or set aside with all its items, any of which brings it back."""
    agent = town.agent(who)
    focus = None if isinstance(agent.attention, Idle) else agent.attention.turn_id
    aside: dict[str, set[str]] = {}
    for row in turns_of(town):
        match row.phase:
            case TurnSetAside():
                aside.setdefault(row.session_id, set()).add(row.id)
                assert row.id != focus
                assert {_turn_of(town.item(one)) for one in row.item_ids} == {row.id}
            case TurnRunning() | TurnWaiting():
                assert row.id == focus
                waits = isinstance(row.phase, TurnWaiting)
                assert waits == isinstance(agent.attention, Suspended)
            case TurnOver():
                assert row.id != focus
    for (table, name), row in town.rows.items():
        if table == "sessions":
            assert set(row.set_aside) == aside.get(name, set())
            assert row.active_turn is None or row.active_turn == focus
    begun = {one for one in map(_turn_of, town.items(who)) if one is not None}
    assert begun == {turn for turns in aside.values() for turn in turns}
    for steps in town.sessions.values():
        started = [one for one in steps if isinstance(one, s.TurnStarted)]
        assert [one.index for one in started] == list(range(len(started)))


def _turn_of(item: ItemRow) -> str | None:
    """The turn that was set aside with an item, if one was."""
    return item.phase.turn_id if isinstance(item.phase, Queued | Deferred) else None


def check_answers(town: Patient) -> None:
    """A stop that was asked for is honoured; an answer reaches the call that waits for it."""
    events = [one.recorded.event for one in town.history]
    stopped = {e.turn_id for e in events if isinstance(e, f.StopRequested)}
    over = {row.id: row.phase for row in turns_of(town) if isinstance(row.phase, TurnOver)}
    for turn in stopped & set(over):
        assert isinstance(over[turn].outcome, Cancelled | Interrupted)
    told = {e.call_id: e for e in events if isinstance(e, s.ToolCallFinished)}
    answered = [e for e in events if isinstance(e, f.FocusAnswered)]
    assert len(answered) == sum(isinstance(e, p.ApprovalAnswered) for e in events)
    for event in answered:
        if event.call_id in told and event.turn_id not in stopped:
            result = told[event.call_id]
            assert (result.resolution, result.content) == ("answered", event.content)


def check_shown(town: Patient, who: str) -> None:
    """4: a turn is shown its own items with all that joined them, and nothing else.

    What is completed was shown to the turn that completed it, whole.
    """
    shown: dict[str, set[str]] = {}
    for one in town.history:
        event = one.recorded.event
        if isinstance(event, s.TurnStarted):
            shown[event.turn_id] = set(NAMED.findall(event.input))
        elif isinstance(event, s.TurnUpdated):
            shown[event.turn_id] |= set(NAMED.findall(event.content))
    items = town.items(who)
    family = {item.id: {item.id, *(one.id for one in town.joined(item))} for item in items}
    for row in turns_of(town):
        own = {one for item_id in row.item_ids for one in family[item_id]}
        assert shown[row.id] <= own
    for item in items:
        joined, phase = town.joined(item), item.phase
        if isinstance(phase, Done) and item.id in town.rows["turns", phase.turn_id].item_ids:
            assert family[item.id] <= shown[phase.turn_id]
        assert item.merged == len(joined)
        assert item.merged_chars == sum(len(one.payload.content) for one in joined)
        while isinstance(phase, Merged):  # and never round in a circle
            phase = town.item(phase.into).phase
