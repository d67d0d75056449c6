"""Old shapes of events, brought to today's by pure steps, once, on read.

`UPCASTS[name][n]` turns the data of schema `n` into that of `n + 1`. A test holds the table
against the catalogue: every number below the current one has its step, and one golden sample
of every (name, number) ever released must decode for ever.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from undivided.domain.errors import Corrupt

Data = dict[str, Any]

UPCASTS: dict[str, dict[int, Callable[[Data], Data]]] = {}


def upcast(name: str, schema: int, current: int, data: Data) -> Data:
    """`data` of an event called `name`, brought from `schema` to `current`.

    A schema above `current` was written by a newer release: it is read as it is, and fields
    that are not known here are passed over.

    Raises:
        Corrupt: a step is missing.
    """
    while schema < current:
        step = UPCASTS.get(name, {}).get(schema)
        if step is None:
            raise Corrupt(f"no upcast of {name} from schema {schema} to {schema + 1}")
        data, schema = step(data), schema + 1
    return data
