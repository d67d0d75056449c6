"""The groups of rows, in the order in which they are measured, and where each is written."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from undivided.cli.bench.measuring import Bench
    from undivided.cli.bench.rows import Row

    Group = Callable[[Bench], Awaitable[list[Row]]]

GROUPS: Mapping[str, str] = MappingProxyType(
    {
        "append": "appending.append",
        "accept": "appending.accepting",
        "burst": "joining.burst",
        "crowd": "crowding.crowd",
        "step": "appending.stepping",
        "http": "serving.http",
        "wake": "turning.wake",
        "turns": "turning.turns",
        "idle": "resting.idle",
        "sleeping": "resting.sleeping",
        "orphan": "killing.orphans",
        "fold": "history.folding",
        "behind": "history.behind",
        "yield": "attending.yielding",
        "attention": "attending.attention",
        "deciding": "appending.deciding",
    }
)
"""Module and function by name; imported when measured, for the command line must start quickly."""


def group(name: str) -> Group:
    """The function that measures a group of rows."""
    module, function = GROUPS[name].split(".")
    found: Group = getattr(import_module(f"undivided.cli.bench.{module}"), function)
    return found
