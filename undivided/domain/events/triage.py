"""Events of triage: an agent considers all that waits before it chooses; stream `agent:<id>`."""

from __future__ import annotations

from undivided.domain.decisions import Decision
from undivided.domain.value import Value


class TriageBegan(Value, frozen=True, kw_only=True):
    """A deliberation about `item_ids` began; the `head` is what would be picked without it.

    The items wait meanwhile.
    """

    agent_id: str
    turn_id: str
    session_id: str
    head: str
    item_ids: tuple[str, ...]
    epoch: int


class TriageApplied(Value, frozen=True, kw_only=True):
    """What was considered is decided: each list holds the items that this became true of.

    `primary` is what the agent turns to, together with the `batch`. `aborted`: a person wrote
    meanwhile, or the turn was stopped, and the plan was discarded; `primary` is the head then,
    and waits on. Without `turn_id` it was a mini triage.
    """

    agent_id: str
    turn_id: str | None
    epoch: int
    decision: Decision
    primary: str
    batch: tuple[str, ...] = ()
    inline: tuple[str, ...] = ()
    deferred: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    reasoning: str = ""
    aborted: bool = False
