"""What a suspended turn can wait for. A wait holds no worker, permit or connection."""

from __future__ import annotations

from msgspec import Struct


class Sleep(Struct, frozen=True, tag="sleep", tag_field="kind"):
    """The turn asked to rest for `seconds`; a timer or a new stimulus ends it."""

    seconds: float


Wait = Sleep
