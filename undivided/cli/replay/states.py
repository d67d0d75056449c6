"""An agent or a session at one event, as plain values that can be shown and compared. Pure.

Folded by the product's own reducers, so that what is shown is what decisions saw.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from undivided.cli.replay.story import Story
from undivided.domain.dialogue import AssistantSaid, ToolAnswered, UserSaid
from undivided.domain.events import sessions as s
from undivided.domain.history import said_of
from undivided.domain.mailbox import summary_of
from undivided.domain.outcomes import outcome_name
from undivided.domain.placed import Placed
from undivided.domain.state.agent import AgentRow, FlightRow, Focused, Idle, MemoryRow, Suspended
from undivided.domain.state.item import TERMINAL, ItemRow, Queued
from undivided.domain.state.session import DecisionRow, SessionRow, TurnOver, TurnRow, TurnWaiting
from undivided.projections.table import Rows, fold

DECISIONS_SHOWN = 5
State = dict[str, Any]


class Fold:
    """A story folded as far as it was taken."""

    def __init__(self, story: Story) -> None:
        self._story = story
        self._rows: Rows = {}
        self._messages: dict[str, list[State]] = {}
        self._session_of: dict[str, str] = {}
        self._last: Placed | None = None

    def take(self, events: Iterable[Placed]) -> Fold:
        """Fold the next events."""
        for placed in events:
            self._last = placed
            fold(self._rows, [placed.recorded])
            self._hear(placed)
        return self

    def state(self) -> State:
        """Everything there is to see now."""
        head: State = {
            "kind": self._story.kind,
            "id": self._story.id,
            "position": None,
            "time": None,
        }
        if self._last is not None:
            head["position"] = str(self._last.coordinate)
            head["time"] = _time(self._last.recorded.at)
        if self._story.kind == "agent":
            return head | self._agent()
        return head | self._session(self._story.id)

    def _hear(self, placed: Placed) -> None:
        event = placed.recorded.event
        if isinstance(event, s.TurnStarted):
            self._session_of[event.turn_id] = event.session_id
        message = _message(placed)
        if message is not None:
            session = self._session_of.get(message["turnId"], "")
            self._messages.setdefault(session, []).append(message)

    def _agent(self) -> State:
        agent = self._rows.get(("agents", self._story.id))
        if not isinstance(agent, AgentRow):
            return {"agent": None}
        flight = self._rows.get(("flights", agent.id))
        items = self._all(ItemRow)
        sessions = sorted(self._all(SessionRow), key=lambda one: (one.opened_at, one.id))
        return {
            "agent": {
                "name": agent.name, "status": agent.lifecycle, "model": agent.model,
                "policyVersion": agent.policy_version, "waiting": agent.waiting,
            },
            "attention": _attention(agent),
            "flight": _flight(flight) if isinstance(flight, FlightRow) else None,
            "queued": [_item(item) for item in sorted(items, key=_rank) if _waits(item)],
            "items": _counts(items),
            "decisions": [_decision(one) for one in self._decisions()],
            "memory": {m.key: m.content for m in self._all(MemoryRow)},
            "sessions": {one.id: self._session(one.id) for one in sessions},
        }  # fmt: skip

    def _session(self, session_id: str) -> State:
        row = self._rows.get(("sessions", session_id))
        if not isinstance(row, SessionRow):
            return {"session": None}
        turns = [turn for turn in self._all(TurnRow) if turn.session_id == session_id]
        return {
            "session": {
                "agentId": row.agent_id, "status": row.status, "activeTurn": row.active_turn,
                "usage": {"input": row.usage.input_tokens, "output": row.usage.output_tokens},
            },
            "turns": {turn.id: _turn(turn) for turn in turns},
            "messages": list(self._messages.get(session_id, ())),
        }  # fmt: skip

    def _decisions(self) -> Sequence[DecisionRow]:
        made = sorted(self._all(DecisionRow), key=lambda one: one.version)
        return made[-DECISIONS_SHOWN:]

    def _all(self, kind: type[Any]) -> list[Any]:
        return [row for row in self._rows.values() if isinstance(row, kind)]


def state_of(story: Story) -> State:
    """The end of a story."""
    return Fold(story).take(story.events).state()


def _message(placed: Placed) -> State | None:
    event = placed.recorded.event
    said = said_of(event)
    if said is None:
        return None
    message: State = {"role": "", "content": said.content, "turnId": getattr(event, "turn_id", "")}
    match said:
        case UserSaid():
            message["role"] = "user"
        case AssistantSaid(calls=calls):
            message["role"] = "assistant"
            if calls:
                message["toolCalls"] = [
                    {"id": call.id, "tool": call.tool, "args": call.args} for call in calls
                ]
        case ToolAnswered(call_id=call_id, tool=tool):
            message |= {"role": "tool", "toolCallId": call_id, "tool": tool}
    return message | {
        "createdAt": _time(placed.recorded.at), "position": str(placed.coordinate)
    }  # fmt: skip


def _attention(agent: AgentRow) -> State:
    match agent.attention:
        case Idle(since=since):
            return {"state": "idle", "since": _time(since)}
        case Focused() as focus:
            return {
                "state": "focused", "turnId": focus.turn_id, "sessionId": focus.session_id,
                "itemIds": list(focus.item_ids), "since": _time(focus.since),
                "stopBy": focus.stop_by, "mode": focus.mode,
                "considered": list(focus.considered),
            }  # fmt: skip
        case Suspended() as focus:
            return {
                "state": "suspended", "turnId": focus.turn_id, "sessionId": focus.session_id,
                "itemIds": list(focus.item_ids), "since": _time(focus.since),
                "until": _time(focus.until), "stopBy": focus.stop_by,
            }  # fmt: skip


def _flight(flight: FlightRow) -> State:
    return {"epoch": flight.epoch, "worker": flight.worker, "held": flight.held}


def _item(item: ItemRow) -> State:
    not_before = item.phase.not_before if isinstance(item.phase, Queued) else None
    return {
        "id": item.id, "sourceType": item.source_type, "priority": item.priority,
        "summary": summary_of(item.payload), "from": item.sender.name or item.sender.id,
        "notBefore": None if not_before is None else _time(not_before),
    }  # fmt: skip


def _rank(item: ItemRow) -> tuple[int, int]:
    return item.priority, item.seq


def _waits(item: ItemRow) -> bool:
    return _status(item) not in (*TERMINAL, "processing")


def _status(item: ItemRow) -> str:
    return str(item.phase.__struct_config__.tag)


def _counts(items: Iterable[ItemRow]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for item in items:
        counts[_status(item)] = counts.get(_status(item), 0) + 1
    return counts


def _decision(made: DecisionRow) -> State:
    return {
        "id": made.id, "type": made.type, "rule": made.rule, "itemId": made.item_id,
        "reasoning": made.reasoning,
    }  # fmt: skip


def _turn(turn: TurnRow) -> State:
    shown: State = {"status": str(turn.phase.__struct_config__.tag), "itemIds": list(turn.item_ids)}
    match turn.phase:
        case TurnOver(outcome=outcome):
            shown["outcome"] = outcome_name(outcome)
        case TurnWaiting(until=until):
            shown["until"] = _time(until)
        case _:
            pass
    return shown


def _time(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
