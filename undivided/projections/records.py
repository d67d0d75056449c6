"""Activities, decisions, working memory and notices: what people look at."""

from __future__ import annotations

from msgspec.structs import replace

from undivided.domain.decisions import Decision
from undivided.domain.events import agents as a
from undivided.domain.events import items as i
from undivided.domain.events import triage as t
from undivided.domain.outcomes import outcome_name
from undivided.domain.recorded import Recorded
from undivided.domain.scenarios import DELIBERATION
from undivided.domain.state.agent import KnowledgeRow, MemoryRow
from undivided.domain.state.session import ActivityRow, DecisionRow, NoticeRow

ENDING = i.ItemCompleted | i.ItemRequeued | i.ItemDeadLettered | i.ItemCancelled
DECIDED = (
    i.ItemPicked | ENDING | i.ItemMerged | i.ItemDeferred | i.ItemResumed | i.ItemDropped
    | i.ItemExpired | i.ItemWeighed
    | t.TriageApplied
)  # fmt: skip
REMEMBERED = a.MemoryNoted | a.MemoryCleared
KNOWN = a.KnowledgeSaved | a.KnowledgeRemoved
ACTIVE = i.ItemPicked | ENDING | t.TriageBegan | t.TriageApplied


def activity_keys(recorded: Recorded) -> tuple[str, ...]:
    """The turn in which something was done about an item."""
    event = recorded.event
    if isinstance(event, ACTIVE) and event.turn_id is not None:
        return (event.turn_id,)
    return ()


def reduce_activity(row: ActivityRow | None, recorded: Recorded) -> ActivityRow | None:
    """The activity after `recorded`; its type and summary come with the pick."""
    event, at = recorded.event, recorded.at
    match event:
        case i.ItemPicked():
            return _began(event, recorded)
        case t.TriageBegan():
            return _considering(event, recorded)
        case t.TriageApplied() if row is not None:
            return replace(row, outcome="aborted" if event.aborted else "completed", ended_at=at)
        case i.ItemCompleted() if row is not None:
            return replace(row, outcome=outcome_name(event.outcome), ended_at=at)
        case i.ItemRequeued() if row is not None:
            return replace(row, outcome=event.reason, ended_at=at)
        case i.ItemDeadLettered() if row is not None:
            return replace(row, outcome="dead_letter", ended_at=at)
        case i.ItemCancelled() if row is not None:
            return replace(row, outcome="cancelled", ended_at=at)
        case _:
            return row


def _began(event: i.ItemPicked, recorded: Recorded) -> ActivityRow:
    """A turn is one activity: the pick of each item of a batch says what its first item is."""
    inputs = event.decision.inputs
    return ActivityRow(
        id=event.turn_id, agent_id=event.agent_id,
        item_id=event.batch_of or event.item_id,
        session_id=event.session_id, type=str(inputs.get("activity") or "internal"),
        summary=str(inputs.get("batchSummary") or inputs.get("summary") or ""), outcome=None,
        started_at=recorded.at, ended_at=None,
    )  # fmt: skip


def _considering(event: t.TriageBegan, recorded: Recorded) -> ActivityRow:
    return ActivityRow(
        id=event.turn_id, agent_id=event.agent_id, item_id=event.head,
        session_id=event.session_id, type=DELIBERATION,
        summary=f"considers {len(event.item_ids)} items", outcome=None,
        started_at=recorded.at, ended_at=None,
    )  # fmt: skip


def decision_keys(recorded: Recorded) -> tuple[str, ...]:
    """The decision that an event carries out, if it does.

    A pick that follows from a triage carries out what is recorded with that.
    """
    event = recorded.event
    if not isinstance(event, DECIDED):
        return ()
    if isinstance(event, i.ItemPicked) and event.decision.type == "triage":
        return ()
    return (event.decision.id,)


def reduce_decision(row: DecisionRow | None, recorded: Recorded) -> DecisionRow | None:
    """The decision's row; a decision is made once and never changes."""
    event = recorded.event
    if not isinstance(event, DECIDED):
        return row
    made: Decision = event.decision
    about = event.primary if isinstance(event, t.TriageApplied) else event.item_id
    return DecisionRow(
        id=made.id, agent_id=event.agent_id, type=made.type, rule=made.rule,
        reasoning=made.reasoning, item_id=about,
        turn_id=getattr(event, "turn_id", None), inputs=made.inputs, losers=made.losers,
        policy_version=made.policy_version,
        version=recorded.version, made_at=recorded.at,
    )  # fmt: skip


def memory_keys(recorded: Recorded) -> tuple[str, ...]:
    """The entry that was written, and those that gave way to it."""
    match recorded.event:
        case a.MemoryNoted(agent_id=agent_id, key=key, evicted=evicted):
            return tuple(memory_id(agent_id, one) for one in (key, *evicted))
        case a.MemoryCleared(agent_id=agent_id, keys=keys):
            return tuple(memory_id(agent_id, one) for one in keys)
        case _:
            return ()


def memory_id(agent_id: str, key: str) -> str:
    """Row id of one working-memory entry."""
    return f"{agent_id}/{key}"


def reduce_memory(key: str, row: MemoryRow | None, recorded: Recorded) -> MemoryRow | None:
    """The entry `key` after `recorded`; None once it is evicted or cleared."""
    event = recorded.event
    if isinstance(event, a.MemoryCleared):
        return None
    if not isinstance(event, a.MemoryNoted):
        return row
    if key != memory_id(event.agent_id, event.key):
        return None
    return MemoryRow(
        id=key, agent_id=event.agent_id, key=event.key, content=event.content,
        noted_at=recorded.at, by=event.by,
    )  # fmt: skip


def knowledge_keys(recorded: Recorded) -> tuple[str, ...]:
    """What the agent has come to know, or knows no more."""
    event = recorded.event
    if isinstance(event, KNOWN):
        return (knowledge_id(event.agent_id, event.kind, event.key),)
    return ()


def knowledge_id(agent_id: str, kind: str, key: str) -> str:
    """Row id of something that an agent knows."""
    return f"{agent_id}/{kind}/{key}"


def reduce_knowledge(row: KnowledgeRow | None, recorded: Recorded) -> KnowledgeRow | None:
    """What an agent knows under a key, after `recorded`."""
    event = recorded.event
    if isinstance(event, a.KnowledgeRemoved):
        return None
    if not isinstance(event, a.KnowledgeSaved):
        return row
    return KnowledgeRow(
        id=knowledge_id(event.agent_id, event.kind, event.key), agent_id=event.agent_id,
        kind=event.kind, key=event.key, content=event.content, saved_at=recorded.at,
        version=recorded.version if row is None else row.version,
        changed_version=recorded.version,
    )  # fmt: skip


def notice_keys(recorded: Recorded) -> tuple[str, ...]:
    """The notice that was posted."""
    event = recorded.event
    return (event.notice_id,) if isinstance(event, i.NoticePosted) else ()


def reduce_notice(row: NoticeRow | None, recorded: Recorded) -> NoticeRow | None:
    """The notice's row."""
    event = recorded.event
    if not isinstance(event, i.NoticePosted):
        return row
    return NoticeRow(
        id=event.notice_id, user_id=event.user_id, agent_id=event.agent_id,
        item_id=event.item_id, kind=event.kind, text=event.text, posted_at=recorded.at,
    )  # fmt: skip
