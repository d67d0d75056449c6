"""An event together with its place in the total order of the log."""

from __future__ import annotations

from undivided.domain.coordinates import Coordinate
from undivided.domain.recorded import Recorded
from undivided.domain.value import Value


class Placed(Value, frozen=True):
    """One recorded event and where it stands; events of one append share their `txid`."""

    coordinate: Coordinate
    recorded: Recorded
