"""The groups of rows, in the order in which they are measured."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType

from undivided.cli.bench import (
    appending,
    crowding,
    history,
    killing,
    resting,
    serving,
    turning,
)
from undivided.cli.bench.measuring import Bench
from undivided.cli.bench.rows import Row

Group = Callable[[Bench], Awaitable[list[Row]]]

GROUPS: Mapping[str, Group] = MappingProxyType(
    {
        "append": appending.append,
        "accept": appending.accepting,
        "crowd": crowding.crowd,
        "step": appending.stepping,
        "http": serving.http,
        "wake": turning.wake,
        "turns": turning.turns,
        "idle": resting.idle,
        "sleeping": resting.sleeping,
        "orphan": killing.orphans,
        "fold": history.folding,
        "behind": history.behind,
        "deciding": appending.deciding,
    }
)
