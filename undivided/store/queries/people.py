"""What people were told and asked.

A row changes once at most. So a row of the past is today's without its change, where that came
later; which is told by the versions of the two events in the person's stream.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from undivided.domain.errors import NotFound
from undivided.domain.notifications import EVERYBODY
from undivided.domain.state.people import ApprovalRow, NotificationRow
from undivided.store.codec import row_decoder
from undivided.store.queries.reading import Reading, is_id

_notification_of = row_decoder(NotificationRow)
_approval_of = row_decoder(ApprovalRow)

ApprovalStatus = Literal["pending", "approved", "rejected", "expired", "cancelled"]

_NOTIFICATIONS = """
SELECT to_jsonb(n)::text,
       CASE WHEN changed THEN c.txid || '-' || c.position ELSE b.txid || '-' || b.position END,
       changed
  FROM notifications n
  JOIN events b ON b.tenant = n.tenant AND b.stream = 'user:' || n.user_id
   AND b.version = n.version
  JOIN events c ON c.tenant = n.tenant AND c.stream = 'user:' || n.user_id
   AND c.version = n.changed_version
 CROSS JOIN LATERAL (SELECT (c.txid, c.position) <= (%(txid)s, %(position)s) AS changed) known
 WHERE n.tenant = %(tenant)s AND n.user_id = ANY(%(users)s)
   AND (b.txid, b.position) <= (%(txid)s, %(position)s)
   AND (%(kinds)s::text[] IS NULL OR n.kind = ANY(%(kinds)s))
   AND (NOT %(unread)s OR n.read_at IS NULL OR NOT changed)
   AND (n.posted_at, n.id) < (%(at)s, %(id)s)
 ORDER BY n.posted_at DESC, n.id DESC LIMIT %(limit)s OFFSET %(offset)s"""

_COUNTS = """
SELECT count(*) FILTER (WHERE (%(kinds)s::text[] IS NULL OR n.kind = ANY(%(kinds)s))
                          AND (NOT %(unread)s OR n.read_at IS NULL)),
       count(*) FILTER (WHERE n.read_at IS NULL)
  FROM notifications n WHERE n.tenant = %(tenant)s AND n.user_id = ANY(%(users)s)"""

_COUNTS_THEN = """
SELECT count(*) FILTER (WHERE (%(kinds)s::text[] IS NULL OR n.kind = ANY(%(kinds)s))
                          AND (NOT %(unread)s OR n.read_at IS NULL OR NOT changed)),
       count(*) FILTER (WHERE n.read_at IS NULL OR NOT changed)
  FROM notifications n
  JOIN events b ON b.tenant = n.tenant AND b.stream = 'user:' || n.user_id
   AND b.version = n.version
  JOIN events c ON c.tenant = n.tenant AND c.stream = 'user:' || n.user_id
   AND c.version = n.changed_version
 CROSS JOIN LATERAL (SELECT (c.txid, c.position) <= (%(txid)s, %(position)s) AS changed) known
 WHERE n.tenant = %(tenant)s AND n.user_id = ANY(%(users)s)
   AND (b.txid, b.position) <= (%(txid)s, %(position)s)"""

_APPROVALS = """
WITH clock AS MATERIALIZED (
  SELECT CASE WHEN %(txid)s = 9223372036854775807 THEN clock_timestamp() ELSE (
    SELECT e.recorded_at FROM events e WHERE (e.txid, e.position) <= (%(txid)s, %(position)s)
     ORDER BY e.txid DESC, e.position DESC LIMIT 1) END AS now)
SELECT to_jsonb(a)::text, became.status,
       CASE WHEN changed THEN c.txid || '-' || c.position ELSE b.txid || '-' || b.position END
  FROM approvals a
  JOIN clock ON true
  JOIN events b ON b.tenant = a.tenant AND b.stream = 'user:' || a.user_id
   AND b.version = a.version
  JOIN events c ON c.tenant = a.tenant AND c.stream = 'user:' || a.user_id
   AND c.version = a.changed_version
  LEFT JOIN turns t ON t.tenant = a.tenant AND t.id = a.turn_id
  LEFT JOIN events o ON o.tenant = t.tenant AND o.stream = 'session:' || t.session_id
   AND o.version = t.last_version
 CROSS JOIN LATERAL (SELECT (c.txid, c.position) <= (%(txid)s, %(position)s) AS changed) known
 CROSS JOIN LATERAL (SELECT CASE
    WHEN changed AND a.status = 'answered' THEN
      CASE WHEN (a.phase->>'approved')::boolean THEN 'approved' ELSE 'rejected' END
    WHEN changed AND a.status <> 'pending' THEN a.status
    WHEN a.expires_at <= clock.now THEN 'expired'
    WHEN (o.txid, o.position) <= (%(txid)s, %(position)s) THEN 'cancelled'
    ELSE 'pending' END AS status) became
 WHERE a.tenant = %(tenant)s AND (b.txid, b.position) <= (%(txid)s, %(position)s)
   AND (%(only)s::text IS NULL OR a.id = %(only)s)
   AND (%(agent)s::text IS NULL OR a.agent_id = %(agent)s)
   AND (%(user)s::text IS NULL OR a.user_id = %(user)s)
   AND (%(statuses)s::text[] IS NULL OR became.status = ANY(%(statuses)s))
   AND (a.requested_at, a.id) < (%(at)s, %(id)s)
 ORDER BY a.requested_at DESC, a.id DESC LIMIT %(limit)s"""


class Place(Struct, frozen=True, array_like=True):
    """Where a page of either list ended."""

    at: datetime
    id: str


_NEWEST = Place(datetime.fromisoformat("9999-01-01T00:00:00+00:00"), "")


class NotificationThen(Struct, frozen=True):
    """A notification, and the coordinate of the last event about it."""

    row: NotificationRow
    position: str


class ApprovalThen(Struct, frozen=True):
    """A request, what has become of it, and the coordinate of the last event about it."""

    row: ApprovalRow
    status: ApprovalStatus
    position: str


class WantedNotifications(Struct, frozen=True, kw_only=True):
    """Whose notifications, which of them, and which page."""

    user_id: str
    kinds: Sequence[str] | None = None
    unread: bool = False
    before: Place | None = None
    offset: int = 0
    limit: int = 50


class WantedApprovals(Struct, frozen=True, kw_only=True):
    """Which requests, and which page."""

    agent_id: str | None = None
    user_id: str | None = None
    statuses: Sequence[str] | None = None
    before: Place | None = None
    limit: int = 50


class Notifications(Struct, frozen=True):
    """A page, where it ends if more follow, and how many there are of the kind and unread."""

    page: list[NotificationThen]
    end: Place | None
    total: int
    unread: int


async def notifications(reading: Reading, wanted: WantedNotifications) -> Notifications:
    """What one person was told, and everybody with them, newest first."""
    place = wanted.before or _NEWEST
    which: dict[str, Any] = {
        "users": list(dict.fromkeys((wanted.user_id, EVERYBODY))),
        "kinds": None if wanted.kinds is None else list(wanted.kinds),
        "unread": wanted.unread,
    }
    rows = await reading.rows(
        _NOTIFICATIONS, at=place.at, id=place.id, limit=wanted.limit + 1, offset=wanted.offset,
        **which, **reading.past(),
    )  # fmt: skip
    if reading.at is None:
        ((total, unread),) = await reading.rows(_COUNTS, **which)
    else:
        ((total, unread),) = await reading.rows(_COUNTS_THEN, **which, **reading.past())
    page = [NotificationThen(_told(text, changed), at) for text, at, changed in rows]
    end = None
    if len(page) > wanted.limit:
        last = page[wanted.limit - 1].row
        end = Place(last.posted_at, last.id)
    return Notifications(page[: wanted.limit], end, total, unread)


def _told(text: str, changed: bool) -> NotificationRow:
    row = _notification_of(text)
    return row if changed else replace(row, read_at=None)


async def approvals(
    reading: Reading, wanted: WantedApprovals
) -> tuple[list[ApprovalThen], Place | None]:
    """A page of what people were asked, newest first, and where it ends if more follow."""
    page = await _approvals(reading, wanted, None)
    if len(page) <= wanted.limit:
        return page, None
    last = page[wanted.limit - 1].row
    return page[: wanted.limit], Place(last.requested_at, last.id)


async def approval(reading: Reading, approval_id: str) -> ApprovalThen:
    """One request for approval.

    Raises:
        NotFound: there is none of this id, or was none by then.
    """
    found = await _approvals(reading, WantedApprovals(), approval_id) if is_id(approval_id) else []
    if not found:
        raise NotFound(f"there is no approval {approval_id[:128]!r}")
    return found[0]


async def _approvals(
    reading: Reading, wanted: WantedApprovals, only: str | None
) -> list[ApprovalThen]:
    place = wanted.before or _NEWEST
    rows = await reading.rows(
        _APPROVALS, only=only, agent=wanted.agent_id, user=wanted.user_id,
        statuses=None if wanted.statuses is None else list(wanted.statuses),
        at=place.at, id=place.id, limit=wanted.limit + 1, **reading.past(),
    )  # fmt: skip
    return [ApprovalThen(_approval_of(text), status, at) for text, status, at in rows]
