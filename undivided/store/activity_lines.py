"""The agent's chat is told, in the append that ends a turn, what the agent did elsewhere."""

from __future__ import annotations

from undivided.domain.activity_lines import activity_line, leaves_line
from undivided.domain.attention import chat_session
from undivided.domain.endings import Fate
from undivided.domain.outcomes import Outcome
from undivided.domain.recorded import session_stream
from undivided.store.flights import Flight
from undivided.store.log import Addition, AgentTx


async def lines_for_chat(
    tx: AgentTx, flight: Flight, outcome: Outcome, fates: tuple[Fate, ...]
) -> Addition | None:
    """One line for each item that is over; None where nobody has talked with the agent yet.

    A chat is written to by its own agent's flights, and by nobody else but to archive it: then
    the append is refused, and made again under the agent's lock.
    """
    chat = chat_session(tx.agent.id)
    over = {fate.item_id for fate in fates if fate.is_over}
    items = tuple(one for one in flight.items if one.id in over and leaves_line(one))
    if flight.session.id == chat or not items:
        return None
    found = await tx.session(chat)
    if found.row is None or found.row.status != "active" or found.row.agent_id != tx.agent.id:
        return None
    lines = tuple(activity_line(tx.agent.id, flight.turn.id, item, outcome) for item in items)
    return Addition(session_stream(chat), found.version, lines)
