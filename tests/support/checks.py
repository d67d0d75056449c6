"""What must be true of one agent of a `Town`, whatever happened."""

from __future__ import annotations

from tests.support.town import Hand, Town
from undivided.domain import turn
from undivided.domain.attention import choose, known_only, what_is_due
from undivided.domain.events import sessions as s
from undivided.domain.history import provider_history, said_of
from undivided.domain.merging import RULE
from undivided.domain.state.agent import Focused, Idle, Suspended
from undivided.domain.state.item import DeadLetter, ItemRow, Processing, Queued
from undivided.domain.state.session import TurnOver, TurnRunning, TurnWaiting


def check_request(town: Town, hand: Hand, ask: turn.AskModel) -> None:
    """4: what waits shows in no request, nor does anything of another agent."""
    session = town.sessions[hand.turn.session_id]
    recorded = [e for e in session if isinstance(e, s.ModelResponded)]
    assert (hand.turn.id, ask.step) not in {(e.turn_id, e.step) for e in recorded}
    assert hand.turn.responses_before + ask.step == len(recorded)
    said = [one for one in map(said_of, session) if one is not None]
    shown = {one.content for one in provider_history(said, 1000, 10**6)}
    picked = [one for one in town.items(hand.agent_id) if one.tries.picked]
    own = {one.payload.content for item in picked for one in (item, *town.joined(item))}
    assert hand.state.begun.input in shown
    told = {words for text in shown if text.startswith("<") for words in text.split(RULE)}
    assert told <= own


def check_agent(town: Town, who: str) -> None:
    """One agent's rows against each other."""
    agent, items = town.agent(who), town.items(who)
    queued = [one for one in items if isinstance(one.phase, Queued)]
    at_work = [one for one in items if isinstance(one.phase, Processing)]
    assert agent.waiting == len(queued)
    assert len({one.seq for one in items}) == len(items)
    assert all(one.tries.picked or _fresh(one) for one in queued)
    assert all(_setbacks(one) <= agent.policy.max_delivery_attempts for one in items)
    told = {row.item_id for (table, _), row in town.rows.items() if table == "notices"}
    assert {one.id for one in items if isinstance(one.phase, DeadLetter)} == {
        one.id for one in items if one.id in told
    }
    memories = [row for (table, _), row in town.rows.items() if table == "memories" and row]
    assert sum(row.agent_id == who for row in memories) <= agent.policy.working_memory_entries
    match agent.attention:
        case Idle():
            assert at_work == []
        case (Focused() | Suspended()) as focus:
            assert [one.id for one in at_work] == list(focus.item_ids)
            row, session = town.rows["turns", focus.turn_id], town.session(focus.session_id)
            expected = TurnWaiting if isinstance(focus, Suspended) else TurnRunning
            assert isinstance(row.phase, expected)
            assert session is not None
            assert (session.active_turn, session.agent_id) == (focus.turn_id, who)
            assert session.status == "active"
    for (table, _), row in town.rows.items():
        if table == "turns" and row.agent_id == who:
            assert isinstance(row.phase, TurnOver) or row.id == getattr(
                agent.attention, "turn_id", None
            )
    if not isinstance(agent.attention, Idle):
        what_is_due(town.view(who), agent)
    else:
        choose(agent, known_only(town.view(who).queue))


def _fresh(item: ItemRow) -> bool:
    """Whether it waits as it came, held back for others to join it or not."""
    return isinstance(item.phase, Queued) and (item.phase == Queued() or item.phase.coalescing)


def _setbacks(item: ItemRow) -> int:
    tries = item.tries
    return tries.empty_replies + tries.failures + tries.timeouts
