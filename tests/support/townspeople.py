"""What people do to an agent of a town, and what housekeeping does about their answers."""

from __future__ import annotations

from tests.support.patient import Patient
from undivided.domain import agents, approvals
from undivided.domain.events import flights as f
from undivided.domain.events import sessions as s
from undivided.domain.events.catalogue import Event
from undivided.domain.outcomes import Cancelled
from undivided.domain.state.agent import Idle
from undivided.domain.state.item import Deferred, Queued
from undivided.domain.state.people import Pending
from undivided.domain.state.session import TurnOver, TurnRow
from undivided.domain.turn import left_open


def settle(town: Patient) -> None:
    """Record of every request that nobody can answer any more why."""
    rows = [row for (table, _), row in town.rows.items() if table == "approvals"]
    for row in rows:
        over = isinstance(town.rows["turns", row.turn_id].phase, TurnOver)
        expired = row.expires_at is not None and row.expires_at <= town.now
        if isinstance(row.phase, Pending) and (over or expired):
            late = approvals.late(row, None, town.now)
            assert late is not None
            assert late.event is not None
            town.write(late.event)


def stop_session(town: Patient, session_id: str, by: str) -> None:
    """Stop whatever is at work or set aside in a session."""
    session = town.session(session_id)
    assert session is not None
    agent = town.agent(session.agent_id)
    focus, events = agent.attention, list[Event]()
    if not isinstance(focus, Idle) and focus.session_id == session_id:
        events += agents.request_stop(agent, by)
    for turn_id in session.set_aside:
        turn: TurnRow = town.rows["turns", turn_id]
        items = tuple(town.item(one) for one in turn.item_ids)
        events += agents.stop_set_aside(agent, items, by)
    if events:
        town.write(*events)


def delete(town: Patient, agent_id: str) -> None:
    """End an idle agent, with all that waits and every turn that is set aside."""
    agent, view = town.agent(agent_id), town.view(agent_id)
    waiting = tuple(i for i in town.items(agent_id) if isinstance(i.phase, Queued | Deferred))
    events = agents.delete(agent, waiting, tuple(town.name("dec") for _ in waiting))
    epoch = view.flight.epoch + 1 if view.flight else 1
    turns = dict.fromkeys(t for i in waiting if (t := agents.turn_set_aside(i)) is not None)
    ended: list[Event] = []
    for turn_id in turns:
        row, state = town.rows["turns", turn_id], town.folded(turn_id)
        end = s.TurnEnded(
            turn_id=turn_id, session_id=row.session_id, agent_id=agent_id,
            item_ids=row.item_ids, outcome=Cancelled(agents.AGENT_DELETED),
            usage=state.usage, responses=state.responses, tool_calls=state.tool_calls,
            epoch=epoch,
        )  # fmt: skip
        ended += [*left_open(state, epoch), end]
    held: tuple[Event, ...] = (
        f.FlightAcquired(agent_id=agent_id, epoch=epoch, worker=agents.AGENT_DELETED),
        f.FlightReleased(agent_id=agent_id, epoch=epoch, reason="done"),
    )
    town.write(*(held if turns else ()), *events, *ended)
