"""The lines by which an agent's chat keeps track of what the agent does elsewhere."""

from __future__ import annotations

from undivided.domain.attention import chat_session, kind_of
from undivided.domain.events.sessions import ActivityNoted
from undivided.domain.mailbox import summary_of
from undivided.domain.outcomes import Completed, Incomplete, Outcome, outcome_name
from undivided.domain.state.item import ItemRow

SUMMARY_CUT = 120


def activity_line(agent_id: str, turn_id: str, item: ItemRow, outcome: Outcome) -> ActivityNoted:
    """What an item came to, in one line for the agent's chat."""
    label = kind_of(item).label
    summary = _one_line(summary_of(item.payload)) or label
    return ActivityNoted(
        session_id=chat_session(agent_id), agent_id=agent_id, turn_id=turn_id, item_id=item.id,
        line=f"[ACTIVITY: {item.source_type}] {summary} → {_came_to(label, outcome)}",
    )  # fmt: skip


def _came_to(label: str, outcome: Outcome) -> str:
    match outcome:
        case Completed(reply="") | Incomplete(reply=""):
            said = f"{label.lower()} processed" if isinstance(outcome, Completed) else ""
        case Completed(reply=reply) | Incomplete(reply=reply):
            said = _one_line(reply)
        case _:
            said = ""
    if isinstance(outcome, Completed):
        return said
    return f"{outcome_name(outcome)}: {said}" if said else outcome_name(outcome)


def _one_line(text: str) -> str:
    plain = " ".join(text.split())
    return plain[:SUMMARY_CUT] + ("…" if len(plain) > SUMMARY_CUT else "")
