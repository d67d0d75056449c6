"""What a process remembers of agents that it has just appended to.

A producer that speaks to one agent again and again need not read the agent each time: as long as
its stream is where the last append left it, the row is as that append folded it, and if not, the
append is refused. Remembering is worth it only while nobody else writes, so it is for bursts:
after a moment it is more likely wrong than right, and forgotten.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from msgspec import Struct

from undivided.domain.state.view import AgentView

FRESH_S = 0.25
"""How long a view is worth trying."""
ROOM = 1_000
"""Agents remembered at most."""


class Remembered(Struct, frozen=True):
    """A view, and when it held."""

    view: AgentView
    at: float

    @classmethod
    def now(cls, view: AgentView) -> Remembered:
        """A view that holds now."""
        return cls(view, time.monotonic())

    def younger_than(self, seconds: float) -> bool:
        """Whether it held so short a time ago."""
        return time.monotonic() - self.at < seconds


class Memory:
    """The agents last appended to, each as the append left it."""

    def __init__(self) -> None:
        self._views: dict[str, Remembered] = {}
        self._at_work: dict[str, int] = {}

    def keep(self, agent_id: str, view: AgentView) -> None:
        """Remember an agent, and forget whoever was without news for too long."""
        self._views.pop(agent_id, None)
        self._views[agent_id] = Remembered.now(view)
        while len(self._views) > ROOM or not self._oldest().younger_than(FRESH_S):
            del self._views[next(iter(self._views))]

    def _oldest(self) -> Remembered:
        return next(iter(self._views.values()))

    def forget(self) -> None:
        """Remember nobody any more."""
        self._views.clear()

    @contextmanager
    def recall(self, agent_id: str) -> Iterator[AgentView | None]:
        """What is fresh and worth trying: not while others of this process write to the agent."""
        others = self._at_work.get(agent_id, 0)
        self._at_work[agent_id] = others + 1
        try:
            known = self._views.get(agent_id) if others == 0 else None
            yield known.view if known is not None and known.younger_than(FRESH_S) else None
        finally:
            self._at_work[agent_id] -= 1
            if self._at_work[agent_id] == 0:
                del self._at_work[agent_id]
