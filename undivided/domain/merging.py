"""How items that joined another are shown and prompted together with it."""

from __future__ import annotations

from msgspec.structs import replace

from undivided.domain.events.items import Payload
from undivided.domain.state.item import ItemRow

RULE = "\n\n---\n\n"


def composed(item: ItemRow, joined: tuple[ItemRow, ...]) -> Payload:
    """The payload of an item with what has joined it, in order of arrival."""
    if not joined:
        return item.payload
    family = sorted((item, *joined), key=lambda one: one.seq)
    return replace(item.payload, content=RULE.join(one.payload.content for one in family))
