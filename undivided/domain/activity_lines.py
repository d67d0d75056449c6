"""The lines by which an agent's chat keeps track of what the agent does elsewhere."""

from __future__ import annotations

from undivided.domain.attention import chat_session, kind_of
from undivided.domain.demand import invokes_model
from undivided.domain.events.sessions import ActivityNoted
from undivided.domain.mailbox import summary_of
from undivided.domain.outcomes import Completed, Incomplete, Outcome, outcome_name
from undivided.domain.scenarios import CHAT
from undivided.domain.state.item import ItemRow

SUMMARY_CUT = 120
NOTED = "noted (informational)"
"""What came of an item that asked nothing of the model."""


def leaves_line(item: ItemRow) -> bool:
    """Whether the chat is told of an item: not of what people said in a chat themselves."""
    return kind_of(item).scenario != CHAT


def activity_line(agent_id: str, turn_id: str, item: ItemRow, outcome: Outcome) -> ActivityNoted:
    """What an item came to, in one line for the agent's chat."""
    summary = _one_line(summary_of(item.payload)) or kind_of(item).label
    return ActivityNoted(
        session_id=chat_session(agent_id), agent_id=agent_id, turn_id=turn_id, item_id=item.id,
        line=f"[ACTIVITY: {item.source_type}] {summary} → {_came_to(item, outcome)}",
    )  # fmt: skip


def _came_to(item: ItemRow, outcome: Outcome) -> str:
    match outcome:
        case Completed():
            return kind_of(item).done if invokes_model(item) else NOTED
        case Incomplete(reply=reply) if reply.strip():
            return f"{outcome_name(outcome)}: {_one_line(reply)}"
        case _:
            return outcome_name(outcome)


def _one_line(text: str) -> str:
    plain = " ".join(text.split())
    return plain[:SUMMARY_CUT] + ("…" if len(plain) > SUMMARY_CUT else "")
