"""Requests for approval that nobody can answer any more, recorded as such.

Nothing waits for this: a late answer is refused, and readers are told the truth, before it is
recorded. It is housekeeping, so that the log says in the end what became of every question.
"""

from __future__ import annotations

from undivided.domain.approvals import late
from undivided.domain.recorded import Meta, user_stream
from undivided.domain.state.people import ApprovalRow
from undivided.store.batch import Addition
from undivided.store.codec import row_decoder
from undivided.store.database import Database
from undivided.store.stream_tx import streams_locked

AT_ONCE = 100
BY = Meta(actor="system")
_approval_of = row_decoder(ApprovalRow)

_OVER = """
SELECT to_jsonb(a)::text FROM approvals a
  LEFT JOIN turns t ON t.tenant = a.tenant AND t.id = a.turn_id
 WHERE a.tenant = %s AND a.status = 'pending'
   AND (a.expires_at <= clock_timestamp() OR t.status = 'ended')
 ORDER BY a.requested_at LIMIT %s"""


async def settle_approvals(database: Database) -> int:
    """Record what has expired or is not waited for; answers how many, `AT_ONCE` at most."""
    async with database.connection() as connection:
        cursor = await connection.execute(_OVER, (database.tenant, AT_ONCE))
        found = [_approval_of(row[0]) for row in await cursor.fetchall()]
    return sum([await _settle(database, row) for row in found])


async def _settle(database: Database, seen: ApprovalRow) -> bool:
    """Nobody who answers comes between: they lock the person's stream as well."""
    stream = user_stream(seen.user_id)
    async with streams_locked(database, stream) as tx:
        row: ApprovalRow | None = await tx.row("approvals", seen.id)
        why = None if row is None else late(row, None, database.clock.now())
        if why is None or why.event is None:
            return False
        await tx.append([Addition(stream, tx.versions[stream], (why.event,))], BY)
    return True
