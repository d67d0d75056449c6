"""Which waiting items an agent may not put off, discard or call done by a word of its own."""

from __future__ import annotations

from undivided.domain.merging import STANDALONE
from undivided.domain.state.item import ItemRow, Queued
from undivided.domain.stimuli import REGISTRY

ADDRESSED = "directMention"
"""The mark of an item that names the agent itself."""


def is_protected(item: ItemRow) -> bool:
    """What people write, what starts a task, and what only a newer release knows."""
    kind = REGISTRY.get(item.source_type)
    return kind is None or kind.protected or bool(item.payload.extra.get(STANDALONE))


def is_kept(item: ItemRow) -> bool:
    """What a plan leaves waiting whatever it says: also what names the agent."""
    return is_protected(item) or bool(item.payload.extra.get(ADDRESSED))


def is_begun(item: ItemRow) -> bool:
    """Whether a turn was set aside with it, which only that turn's own end can end."""
    return isinstance(item.phase, Queued) and item.phase.turn_id is not None
