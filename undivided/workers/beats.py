"""The clock's part of a sweep: heartbeats, daily reports and memory consolidations that are due."""

from __future__ import annotations

import logging

from undivided.domain.errors import Undivided
from undivided.store import beating
from undivided.store.commands.outlet import Outlet

logger = logging.getLogger("undivided.beats")

AT_ONCE = 50
ASLEEP_EVERY = 30
"""Every how many passes it looks for agents that something has reached in their deep sleep."""


class Beats:
    """Brings agents what is due, one after the other; one pass at a time."""

    def __init__(self, outlet: Outlet) -> None:
        self._outlet, self._passes = outlet, 0

    async def look(self) -> int:
        """One pass; answers how many agents something was brought to.

        What fails for one agent is logged, and due again at the next pass; the others have theirs.
        """
        database = self._outlet.log.database
        agent_ids = await beating.due(database, AT_ONCE)
        if self._passes % ASLEEP_EVERY == 0:
            agent_ids += await beating.asleep(database, AT_ONCE)
        self._passes += 1
        return sum([await self._ring(agent_id) for agent_id in dict.fromkeys(agent_ids)])

    async def _ring(self, agent_id: str) -> bool:
        try:
            return await beating.ring(self._outlet, agent_id)
        except Undivided as error:
            logger.warning("beat put off agent=%s: %s", agent_id, error)
            return False
