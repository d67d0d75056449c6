"""A plan: what an agent has decided, in a deliberation, about everything that waits."""

from __future__ import annotations

from typing import Literal

from undivided.domain.value import Value


class MemoryUpdate(Value, frozen=True):
    """Something that the agent wants to keep in mind from here on."""

    key: str
    content: str
    type: Literal["working", "longterm"] = "working"


class Plan(Value, frozen=True, kw_only=True):
    """What becomes of each item that was considered; what no list names goes on waiting.

    `process`: the items of the next turn, the one it is about first. `inline`: those that the
    deliberation itself has dealt with. `awareness`: how the agent sees its situation.
    """

    process: tuple[str, ...]
    batch_context: str = ""
    defer: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    inline: tuple[str, ...] = ()
    reasoning: str = ""
    awareness: str = ""
    memory_updates: tuple[MemoryUpdate, ...] = ()
