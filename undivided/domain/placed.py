"""An event together with its place in the total order of the log."""

from __future__ import annotations

from msgspec import Struct

from undivided.domain.coordinates import Coordinate
from undivided.domain.recorded import Recorded


class Placed(Struct, frozen=True):
    """One recorded event and where it stands; events of one append share their `txid`."""

    coordinate: Coordinate
    recorded: Recorded
