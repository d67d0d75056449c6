"""8: what is over never changes again.

A check holds what is open: turns, callbacks, requests for approval, notifications that nobody has
read. A step, an answer or an end of one that is not open comes too late, or before its time. Of
sessions it holds those that are closed: no turn begins there and nothing is said. (Items are held
to their own lifecycle by 2; runs, tasks and requirements join when there are any.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from undivided.domain.events import callbacks as c
from undivided.domain.events import people as p
from undivided.domain.events import sessions as s
from undivided.domain.events.catalogue import Event
from undivided.domain.events.heartbeats import HeartbeatEnqueued
from undivided.domain.events.items import NoticePosted
from undivided.domain.invariants.finding import Finding, Transaction, broken, name_of
from undivided.domain.placed import Placed

INVARIANT = 8

_STEPS = (
    s.ModelResponded | s.ToolCallStarted | s.ToolCallFinished | s.TurnSuspended | s.TurnResumed
    | s.TurnYielded | s.TurnUpdated | s.TurnNudged | s.TurnPreempted | s.DeliberationPlanned
)  # fmt: skip
_ANSWERS = p.ApprovalAnswered | p.ApprovalExpired | p.ApprovalCancelled
_ENDS = c.CallbackResolved | c.CallbackCancelled
_OPENED = (
    s.TurnStarted | p.ApprovalRequested | c.CallbackRegistered | p.NotificationPosted | NoticePosted
)


class TerminalStays:
    """Nothing happens to what is over."""

    def __init__(self) -> None:
        self._turns: set[str] = set()
        self._approvals: set[str] = set()
        self._callbacks: set[str] = set()
        self._unread: set[str] = set()
        self._closed: dict[str, type[Event]] = {}
        """How the sessions ended that are over."""

    def transaction(self, events: Transaction) -> Iterator[Finding]:
        """What one append does to what is not open."""
        for placed in events:
            if isinstance(placed.recorded.event, _OPENED):
                self._opens(placed.recorded.event)
        for placed in events:
            yield from self._happens(placed)
            yield from self._in_session(placed)
        for placed in events:
            if isinstance(placed.recorded.event, s.TurnEnded):
                turn = placed.recorded.event.turn_id
                yield from _over(placed, self._turns, turn, self._turns.discard)

    def finish(self) -> Iterator[Finding]:
        """Nothing: what is open at the end may be."""
        return iter(())

    def _opens(self, event: _OPENED) -> None:
        match event:
            case s.TurnStarted(turn_id=turn):
                self._turns.add(turn)
            case p.ApprovalRequested(approval_id=approval):
                self._approvals.add(approval)
            case c.CallbackRegistered(callback_id=callback):
                self._callbacks.add(callback)
            case p.NotificationPosted(notification_id=told) | NoticePosted(notice_id=told):
                self._unread.add(told)

    def _in_session(self, placed: Placed) -> Iterator[Finding]:
        match placed.recorded.event:
            case (s.TurnStarted() | s.MessagePosted() | s.ActivityNoted()) as event:
                ended = self._closed.get(event.session_id) is not None
            case (s.SessionArchived() | s.SessionDeleted()) as event:
                before = self._closed.get(event.session_id)
                ended = before is type(event) or before is s.SessionDeleted
                self._closed[event.session_id] = type(event)
            case _:
                return
        if ended:
            text = f"{name_of(event)} in session {event.session_id}, which is over"
            yield broken(INVARIANT, "changed_when_over", event.session_id, placed, text)

    def _happens(self, placed: Placed) -> Iterator[Finding]:
        match placed.recorded.event:
            case event if isinstance(event, _STEPS):
                yield from _over(placed, self._turns, event.turn_id)
            case event if isinstance(event, _ANSWERS):
                yield from _over(
                    placed, self._approvals, event.approval_id, self._approvals.discard
                )
            case c.CallbackRearmed(callback_id=callback):
                yield from _over(placed, self._callbacks, callback)
            case event if isinstance(event, _ENDS):
                yield from _over(
                    placed, self._callbacks, event.callback_id, self._callbacks.discard
                )
            case p.NotificationRead(notification_id=told):
                yield from _over(placed, self._unread, told, self._unread.discard)
            case p.NotificationsAllRead(notification_ids=ids):
                for told in ids:
                    yield from _over(placed, self._unread, told, self._unread.discard)
            case HeartbeatEnqueued(overdue=overdue):
                for callback in overdue:
                    yield from _over(placed, self._callbacks, callback)
            case _:
                pass


def _over(
    placed: Placed, still_open: set[str], name: str, then: Callable[[str], Any] | None = None
) -> Iterator[Finding]:
    if name not in still_open:
        text = f"{name_of(placed.recorded.event)} is about {name}, which is over or never began"
        yield broken(INVARIANT, "changed_when_over", name, placed, text)
    if then is not None:
        then(name)
