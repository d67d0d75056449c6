"""All invariants of a history at once, fed event by event."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from undivided.domain.invariants.calls import OneResultACall
from undivided.domain.invariants.finding import Finding, Transaction
from undivided.domain.invariants.flights import SingleFlight
from undivided.domain.invariants.items import CompletedWithTurn, NothingLost
from undivided.domain.invariants.set_aside import SetAsideReturns
from undivided.domain.invariants.streams import StreamOrder
from undivided.domain.invariants.terminal import TerminalStays
from undivided.domain.invariants.turns import OwnTurnOnly
from undivided.domain.invariants.waits import WaitsEnd
from undivided.domain.placed import Placed


class Invariant(Protocol):
    """One thing that must be true of a history."""

    def transaction(self, events: Transaction) -> Iterator[Finding]:
        """What the events of one append break."""

    def finish(self) -> Iterator[Finding]:
        """What is broken by nothing more coming."""


class HistoryCheck:
    """Feed it every event in coordinate order, then finish; each call answers what it found."""

    def __init__(self) -> None:
        self._invariants: tuple[Invariant, ...] = (
            StreamOrder(),
            SingleFlight(),
            NothingLost(),
            CompletedWithTurn(),
            OwnTurnOnly(),
            OneResultACall(),
            TerminalStays(),
            WaitsEnd(),
            SetAsideReturns(),
        )
        self._open: list[Placed] = []

    def feed(self, placed: Placed) -> list[Finding]:
        """Take the next event; what its append breaks shows once the append is complete."""
        found: list[Finding] = []
        if self._open and self._open[-1].coordinate.txid != placed.coordinate.txid:
            found = self._judge()
        self._open.append(placed)
        return found

    def finish(self) -> list[Finding]:
        """The history ends here."""
        found = self._judge()
        for invariant in self._invariants:
            found.extend(invariant.finish())
        return found

    def _judge(self) -> list[Finding]:
        events, self._open = tuple(self._open), []
        return [found for invariant in self._invariants for found in invariant.transaction(events)]


def findings_of(history: Iterable[Placed]) -> list[Finding]:
    """Everything that is wrong with a whole history."""
    check = HistoryCheck()
    found = [one for placed in history for one in check.feed(placed)]
    return found + check.finish()
