"""0: the versions of each stream have no gap and no repetition, in the order of the log."""

from __future__ import annotations

from collections.abc import Iterator

from undivided.domain.invariants.finding import Finding, Transaction, broken
from undivided.domain.placed import Placed

INVARIANT = 0


class StreamOrder:
    """Every stream counts 1, 2, 3 … as one goes through the log in coordinate order.

    That one clause holds three things: nothing is missing, nothing is there twice, and the
    order of transactions agrees with the order in which a stream was written.
    """

    def __init__(self) -> None:
        self._versions: dict[str, int] = {}

    def transaction(self, events: Transaction) -> Iterator[Finding]:
        """The gaps and repetitions that show in one append."""
        for placed in events:
            yield from self._next(placed)

    def finish(self) -> Iterator[Finding]:
        """Nothing is open at the end: a stream may stop anywhere."""
        return iter(())

    def _next(self, placed: Placed) -> Iterator[Finding]:
        recorded = placed.recorded
        expected = self._versions.get(recorded.stream, 0) + 1
        self._versions[recorded.stream] = max(recorded.version, expected - 1)
        if recorded.version == expected:
            return
        missing = recorded.version > expected
        rule = "version_missing" if missing else "version_out_of_order"
        text = f"version {recorded.version} of {recorded.stream} stands where {expected} belongs"
        yield broken(INVARIANT, rule, recorded.stream, placed, text)
