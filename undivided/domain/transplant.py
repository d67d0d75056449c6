"""Giving a history other names, so that it can stand beside the one it was taken from.

New names are made of the old ones and of where they go, so that the same history transplanted
twice to the same place gets the same names.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import Any
from uuid import UUID

from msgspec import Struct
from msgspec.structs import replace

from undivided.domain.decisions import Decision
from undivided.domain.events import agents as a
from undivided.domain.events import items as i
from undivided.domain.events import people as p
from undivided.domain.events import sessions as s
from undivided.domain.ids import session_id_of
from undivided.domain.plans import Plan
from undivided.domain.recorded import Recorded, agent_stream, session_stream
from undivided.domain.waits import Approval


class Names(Struct):
    """Old names and the new ones they get."""

    agent: tuple[str, str]
    ids: dict[str, str] = {}
    events: dict[str, str] = {}

    def learn(self, recorded: Recorded) -> None:
        """Make up new names for what an event brings into being."""
        event = recorded.event
        self.events[recorded.id] = _uuid(self.agent[1], recorded.id)
        match event:
            case i.StimulusAccepted(item_id=item):
                self._name("mbx", item)
            case i.ItemPicked(turn_id=turn) | s.TurnStarted(turn_id=turn):
                self._name("trn", turn)
            case s.SessionOpened(session_id=session):
                self._session(session)
            case i.NoticePosted(notice_id=notice):
                self._name("ntf", notice)
            case p.NotificationPosted(notification_id=notification):
                self._name("ntf", notification)
            case p.ApprovalRequested(approval_id=approval):
                self._name("apr", approval)
            case _:
                pass
        decision = getattr(event, "decision", None)
        if isinstance(decision, Decision):
            self._name("dec", decision.id)

    def _name(self, prefix: str, old: str) -> None:
        self.ids.setdefault(old, f"{prefix}_{_digest(self.agent[1], old)[:20]}")

    def _session(self, old: str) -> None:
        """A session called after its agent goes on being called after it."""
        before, after = self.agent
        named = session_id_of((old.replace(before, after),)) if before in old else ""
        if named and named != old:
            self.ids.setdefault(old, named)
        else:
            self._name("ses", old)


def names_for(agent: tuple[str, str], history: Iterable[Recorded]) -> Names:
    """New names for a whole history; `agent` is its old and its new id."""
    names = Names(agent)
    for recorded in history:
        names.learn(recorded)
    return names


def renamed(recorded: Recorded, names: Names) -> Recorded:
    """The same event about its namesakes."""
    event = _renamed(recorded.event, names)
    meta = recorded.meta
    return replace(
        recorded,
        id=names.events.get(recorded.id, recorded.id),
        stream=_stream(recorded.stream, names),
        event=event,
        meta=replace(
            meta,
            causation=names.events.get(meta.causation or "", meta.causation),
            correlation=names.events.get(meta.correlation or "", meta.correlation),
            actor=_actor(meta.actor, names),
        ),
    )


_FIELDS = ("session_id", "item_id", "turn_id", "notice_id", "notification_id",
           "approval_id", "id", "into", "behind", "head", "primary", "batch_of")  # fmt: skip
_LISTS = ("item_ids", "losers", "batch", "inline", "deferred", "dropped", "process", "defer",
          "drop", "overdue")  # fmt: skip


def _renamed(value: Any, names: Names) -> Any:
    """A struct with every name in it that is ours replaced."""
    changed: dict[str, Any] = {}
    for field in value.__struct_fields__:
        there = getattr(value, field)
        if field == "agent_id" and there == names.agent[0]:
            changed[field] = names.agent[1]
        elif field in _FIELDS and isinstance(there, str) and _ours(value):
            changed[field] = names.ids.get(there, there)
        elif field in _LISTS:
            changed[field] = tuple(names.ids.get(one, one) for one in there)
        elif field == "idempotency_key":
            turn, colon, call = there.partition(":")
            changed[field] = names.ids.get(turn, turn) + colon + call
        elif isinstance(there, Decision | Approval | p.Action | Plan):
            changed[field] = _renamed(there, names)
    return replace(value, **changed) if changed else value


def _ours(value: Any) -> bool:
    return not isinstance(value, i.Sender | i.Payload | p.ApprovalOption)


def _stream(stream: str, names: Names) -> str:
    kind, _, subject = stream.partition(":")
    match kind:
        case "agent" if subject == names.agent[0]:
            return agent_stream(names.agent[1])
        case "session":
            return session_stream(names.ids.get(subject, subject))
        case _:
            return stream


def _actor(actor: str, names: Names) -> str:
    return f"agent:{names.agent[1]}" if actor == f"agent:{names.agent[0]}" else actor


def _digest(place: str, old: str) -> str:
    return sha256(f"{place}\0{old}".encode("utf-8", "surrogatepass")).hexdigest()


def _uuid(place: str, old: str) -> str:
    """A UUID of version 8 (RFC 9562) made of where the event goes and what it was called."""
    value = int(_digest(place, old)[:32], 16)
    value = value & ~(0xF << 76) | 0x8 << 76
    value = value & ~(0b11 << 62) | 0b10 << 62
    return str(UUID(int=value))


def agent_of(history: Iterable[Recorded]) -> str | None:
    """The agent that a history brings into being."""
    for recorded in history:
        if isinstance(recorded.event, a.AgentCreated):
            return recorded.event.agent_id
    return None
