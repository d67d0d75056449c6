"""Taking the content out of events and leaving their structure.

What stays is named: ids, times, numbers, and words from closed sets, which the types of the
events tell. Every other string gives way to a placeholder of the same length, spaces and line
ends in their places, so that a field nobody thought of is redacted and not told.
"""

from __future__ import annotations

from typing import Any

import msgspec.inspect as mi
from msgspec import Struct
from msgspec.structs import replace

from undivided.domain.beats import CLOCK
from undivided.domain.events.catalogue import Event
from undivided.domain.recorded import Meta

MARK = "x"

STRUCTURE = frozenset({
    "agent_id", "approval_id", "batch_of", "call_id", "definition", "idempotency_key",
    "item_id", "item_ids", "kind", "losers", "model", "notice_id", "notification_id",
    "notification_ids", "requirement_id", "rule", "scenario", "origin", "session_id", "source_type",
    "task_id", "team_id", "tool", "tools", "turn_id", "user_id",
    # of the inputs of a decision
    "activity", "outcome",
    # of what the clock brings
    "active_hours_end", "active_hours_start", "daily_report_at", "day", "fingerprint", "missed",
    "overdue", "timezone",
})  # fmt: skip
"""Names of fields that hold no content."""

_IDENTIFIED = frozenset({"Decision", "ToolCall"})
"""Types whose `id` is an id of ours; a sender's is somebody's."""
_ACTORS = ("agent:", "worker:")


def redacted(event: Event) -> Event:
    """The event without its content."""
    kept: Event = _struct(event)
    return kept


def redacted_meta(meta: Meta) -> Meta:
    """Causes and story stay; who acted stays if it was one of ours."""
    ours = meta.actor.startswith(_ACTORS) or meta.actor in ("system", "check", CLOCK)
    return meta if ours else replace(meta, actor=blotted(meta.actor))


def blotted(text: str) -> str:
    """A placeholder as long as the text."""
    return "".join(c if c.isspace() else MARK for c in text)


def _struct(value: Any) -> Any:
    changed = {
        name: _value(getattr(value, name), kind, _told(type(value).__name__, name))
        for name, kind in _fields(type(value))
    }
    return replace(value, **changed)


def _told(struct: str, field: str) -> bool:
    return struct in _IDENTIFIED if field == "id" else field in STRUCTURE


def _fields(kind: type[Any]) -> tuple[tuple[str, mi.Type], ...]:
    info = mi.type_info(kind)
    return tuple((f.name, f.type) for f in info.fields) if isinstance(info, mi.StructType) else ()


def _value(value: Any, kind: mi.Type, told: bool) -> Any:
    """`value` of a field of this type; `told` if its strings may stay."""
    match value, kind:
        case (Struct(), _):
            return _struct(value)
        case (str(), mi.LiteralType()):
            return value
        case (str(), mi.UnionType(types=types)) if _closed(types):
            return value
        case (str(), _):
            return value if told else blotted(value)
        case (dict(), mi.DictType(value_type=inner)):
            return {key: _value(one, inner, _told_key(key, inner)) for key, one in value.items()}
        case (dict(), _):
            return {key: _value(one, kind, told=False) for key, one in value.items()}
        case (tuple(), mi.VarTupleType(item_type=inner)):
            return tuple(_value(one, inner, told) for one in value)
        case (tuple(), _):
            return tuple(_value(one, kind, told) for one in value)
        case (list(), _):
            return [_value(one, kind, told=False) for one in value]
        case _:
            return value


def _closed(types: tuple[mi.Type, ...]) -> bool:
    return not any(isinstance(one, mi.StrType | mi.AnyType) for one in types)


def _told_key(key: str, inner: mi.Type) -> bool:
    """Whether an entry is structure: in free arguments of a tool nothing is."""
    return not isinstance(inner, mi.AnyType) and key in STRUCTURE
