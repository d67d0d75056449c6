"""Whether an item demands an answer of a model: a rule about the item, not about its type alone."""

from __future__ import annotations

from undivided.domain.attention import kind_of
from undivided.domain.scenarios import COMMENT_RESPONSE
from undivided.domain.state.item import ItemRow


def invokes_model(item: ItemRow) -> bool:
    """Whether a turn about `item` asks the model.

    Comments always do, since somebody may wait for a word about them; some news do if they bear
    the mark that their type names; everything else as its type says.
    """
    kind = kind_of(item)
    if kind.invokes_model or kind.scenario == COMMENT_RESPONSE:
        return True
    return kind.invoked_by is not None and bool(item.payload.extra.get(kind.invoked_by))
