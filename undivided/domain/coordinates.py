"""The coordinate: one place in the total order of the log.

A coordinate is the pair `(txid, position)`. Its token is opaque to clients: SSE id, page
cursor, `at=`, span attribute and log field are all this one string.
"""

from __future__ import annotations

import re

from undivided.domain.errors import Invalid
from undivided.domain.value import Value

_TOKEN = re.compile(r"([0-9]{1,19})-([0-9]{1,19})")
_LARGEST = 2**63 - 1


class Coordinate(Value, frozen=True, order=True):
    """A place in the log; `txid` is offset by the base of the cluster (see `store/clock`)."""

    txid: int
    position: int

    def __str__(self) -> str:
        return f"{self.txid}-{self.position}"


ORIGIN = Coordinate(0, 0)
"""Before everything."""


def parse_coordinate(token: str) -> Coordinate:
    """Read a token that an earlier answer gave out.

    Raises:
        Invalid: the text is not such a token.
    """
    match = _TOKEN.fullmatch(token)
    if match and max(int(match[1]), int(match[2])) <= _LARGEST:
        return Coordinate(int(match[1]), int(match[2]))
    raise Invalid(
        f"{token[:60]!r} is not a coordinate; use a `position` from an earlier answer", "at"
    )
