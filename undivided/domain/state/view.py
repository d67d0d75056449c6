"""What one decision about an agent reads, at one version of the agent's stream."""

from __future__ import annotations

from datetime import datetime

from undivided.domain.state.agent import AgentRow, FlightRow
from undivided.domain.state.item import ItemRow
from undivided.domain.value import Value


class AgentView(Value, frozen=True, kw_only=True):
    """An agent, its flight, the best of its eligible items, and the items in its focus.

    `deferred` are those that are put off and due, or put off without a time.

    `queue` holds only items that may be picked `now`, best first, as many as were asked for,
    and `more` says that it may not be all of them;
    `version` is that of the agent's stream, which everything here is folded from: while it
    holds, all of this holds, unless `edition` was raised because rows were made anew. `now` is
    the database's clock.
    """

    version: int
    now: datetime
    edition: int = 0
    agent: AgentRow | None
    flight: FlightRow | None = None
    queue: tuple[ItemRow, ...] = ()
    more: bool = False
    focus: tuple[ItemRow, ...] = ()
    deferred: tuple[ItemRow, ...] = ()
