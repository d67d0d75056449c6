"""What must be true of every history, as checks that are fed events in coordinate order.

A check reads a history once, front to back, and holds only what is still open: turns at work,
items not yet over, the last version of each stream. It judges whole transactions, because
what is written together is true together; the order of events within one append says nothing.

Numbers: 1 single flight, 2 no item is lost, 3 completed with its turn, 4 queued content shows in
no request before its own turn, 5 one result a call, 8 what is over stays so, 10 rows as the log
says (`rows.py` states that one; the store compares), 11 what waits can be ended. 0 is the log's
own order, on which all others stand.
"""

from undivided.domain.invariants.finding import Finding
from undivided.domain.invariants.history import HistoryCheck, findings_of

__all__ = ["Finding", "HistoryCheck", "findings_of"]
