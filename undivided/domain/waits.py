"""What a suspended turn can wait for. A wait holds no worker, permit or connection."""

from __future__ import annotations

from undivided.domain.value import Value


class Sleep(Value, frozen=True, tag="sleep", tag_field="kind"):
    """The turn asked to rest for `seconds`; a timer or a new stimulus ends it."""

    seconds: float


Wait = Sleep
