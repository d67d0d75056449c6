"""What people do with what they were told: they have seen it."""

from __future__ import annotations

from msgspec import Struct

from undivided.domain.coordinates import Coordinate
from undivided.domain.errors import NotFound
from undivided.domain.events.people import NotificationRead, NotificationsAllRead
from undivided.domain.notifications import EVERYBODY
from undivided.domain.recorded import Meta, user_stream
from undivided.domain.state.people import NotificationRow
from undivided.store.batch import Addition
from undivided.store.commands.outlet import Outlet
from undivided.store.queries.reading import is_id
from undivided.store.stream_tx import StreamTx, streams_locked

AT_ONCE = 1_000
"""How many one event marks at most."""


class Marked(Struct, frozen=True):
    """How many are read now that were not, and where the log stood; None if none was."""

    count: int
    coordinate: Coordinate | None


async def mark_read(outlet: Outlet, notification_id: str, meta: Meta) -> Marked:
    """One notification was seen; a second time changes nothing.

    Raises:
        NotFound: there is no such notification.
    """
    stream = user_stream(await _addressee(outlet, notification_id))
    async with streams_locked(outlet.log.database, stream) as tx:
        row: NotificationRow | None = await tx.row("notifications", notification_id)
        if row is None or row.read_at is not None:
            return Marked(0, None)
        read = NotificationRead(notification_id=row.id, user_id=row.user_id, by=meta.actor)
        appended = await tx.append([Addition(stream, tx.versions[stream], (read,))], meta)
    outlet.announce(row.agent_id or row.user_id)
    return Marked(1, appended.coordinate)


async def mark_all_read(outlet: Outlet, user_id: str, meta: Meta) -> Marked:
    """A person has seen everything, what was told to everybody included."""
    users = tuple(dict.fromkeys((user_id, EVERYBODY)))
    streams = {user: user_stream(user) for user in users}
    async with streams_locked(outlet.log.database, *streams.values()) as tx:
        additions, count = [], 0
        for user, stream in streams.items():
            unread = await _unread(tx, outlet.log.database.tenant, user)
            count += len(unread)
            events = tuple(
                NotificationsAllRead(
                    user_id=user, notification_ids=tuple(unread[n : n + AT_ONCE]), by=meta.actor
                )
                for n in range(0, len(unread), AT_ONCE)
            )
            if events:
                additions.append(Addition(stream, tx.versions[stream], events))
        if not additions:
            return Marked(0, None)
        appended = await tx.append(additions, meta)
    outlet.announce(user_id)
    return Marked(count, appended.coordinate)


async def _unread(tx: StreamTx, tenant: str, user_id: str) -> list[str]:
    cursor = await tx.connection.execute(
        "SELECT id FROM notifications WHERE tenant = %s AND user_id = %s AND read_at IS NULL"
        " ORDER BY posted_at, id",
        (tenant, user_id),
    )
    return [row[0] for row in await cursor.fetchall()]


async def _addressee(outlet: Outlet, notification_id: str) -> str:
    database = outlet.log.database
    if is_id(notification_id):
        async with database.connection() as connection:
            cursor = await connection.execute(
                "SELECT user_id FROM notifications WHERE tenant = %s AND id = %s",
                (database.tenant, notification_id),
            )
            found = await cursor.fetchone()
        if found is not None:
            return str(found[0])
    raise NotFound(f"there is no notification {notification_id[:128]!r}")
