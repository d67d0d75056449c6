"""One transaction about streams that belong to no agent, such as a person's.

The streams are locked in the order of their names before anything is read, as `log.py` has it,
so that whoever writes to them waits in line.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from undivided.domain.recorded import Meta
from undivided.store.batch import Addition, Guards, folded_from, missing, number, written
from undivided.store.database import Database
from undivided.store.exchange import (
    BEGIN,
    COMMIT,
    Call,
    HotConnection,
    Statement,
    exchange,
    text_array,
)
from undivided.store.looks import load_rows
from undivided.store.sending import Appended, send

_LOCK = Statement(b"undivided_lock_streams", b"SELECT lock_streams($1, $2)")
_MAKE = """
INSERT INTO streams (tenant, stream, version) SELECT %s, unnest(%s::text[]), 0
ON CONFLICT DO NOTHING"""
_VERSIONS = """
SELECT s.stream, s.version, b.edition, clock_timestamp() FROM streams s, log_base b
 WHERE s.tenant = %s AND s.stream = ANY(%s) ORDER BY s.stream COLLATE "C" FOR UPDATE OF s"""


class StreamTx:
    """It appends once, and commits; `versions` are those of the streams that it locked."""

    def __init__(
        self, database: Database, connection: HotConnection, versions: dict[str, int], edition: int
    ) -> None:
        self.connection, self.versions = connection, versions
        self._database, self._edition = database, edition

    async def row(self, table: str, row_id: str) -> Any | None:
        """One projected row as this transaction sees it."""
        found = await load_rows(self.connection, self._database.tenant, {table: {row_id}})
        return found[(table, row_id)]

    async def append(self, additions: Sequence[Addition], meta: Meta) -> Appended:
        """Append, fold and commit."""
        tenant = self._database.tenant
        recorded = number(additions, meta, self._database.clock.now())
        rows = await load_rows(self.connection, tenant, missing({}, recorded))
        guards = Guards(edition=self._edition)
        write = written(tenant, additions, folded_from(rows, recorded), guards)
        return await send(self._database, self.connection, write, guards, COMMIT)


@asynccontextmanager
async def streams_locked(database: Database, *streams: str) -> AsyncIterator[StreamTx]:
    """Lock streams and read where they stand; leaving without an append changes nothing."""
    tenant = database.tenant
    async with database.connection() as connection:
        await exchange(connection, BEGIN, Call(_LOCK, (tenant.encode(), text_array(streams))))
        await connection.execute("SET LOCAL idle_in_transaction_session_timeout = '10s'")
        await connection.execute(_MAKE, (tenant, list(streams)))
        cursor = await connection.execute(_VERSIONS, (tenant, list(streams)))
        found = await cursor.fetchall()
        database.clock.heard(found[0][3])
        versions = {stream: version for stream, version, _, _ in found}
        yield StreamTx(database, connection, versions, found[0][2])
