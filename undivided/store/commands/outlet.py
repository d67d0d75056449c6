"""What every command needs: the log to write to, and the ways to tell that it was written."""

from __future__ import annotations

import asyncio

from msgspec import Struct

from undivided.domain.state.agent import AgentRow, Focused, Idle, Suspended
from undivided.store.doorbell import Doorbell
from undivided.store.hints import CANCEL, TAIL, Hints
from undivided.store.log import Log


class Outlet(Struct, frozen=True):
    """The log, and the doorbell and hints that follow a commit; either may be deaf."""

    log: Log
    doorbell: Doorbell
    hints: Hints

    def announce(self, agent_id: str) -> None:
        """Tell listeners that something was committed about an agent."""
        self.hints.publish(TAIL, agent_id.encode())

    def wake(self, before: AgentRow, after_s: float = 0.0) -> None:
        """Ring for an agent that nobody is at work on; whoever is at work looks by itself.

        With `after_s` what came can be picked only then: whoever is at work may be done before,
        so that it is rung for in any case. Should this process not live so long, a sweep does.
        """
        if after_s > 0:
            asyncio.get_running_loop().call_later(after_s, self.doorbell.ring, [before.id])
        elif isinstance(before.attention, (Idle, Suspended)):
            self.doorbell.ring([before.id])
        self.announce(before.id)

    def interrupt(self, before: AgentRow) -> None:
        """Tell whoever drives the agent's turn that a person asked it to stop."""
        if isinstance(before.attention, Focused):
            self.hints.publish(CANCEL, before.attention.turn_id.encode())
