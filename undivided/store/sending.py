"""Sending one append: its statements in one message, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import msgspec
import psycopg
from msgspec import Struct
from psycopg.pq.abc import PGresult

from undivided.domain.coordinates import Coordinate
from undivided.domain.errors import Conflict, StaleFlight
from undivided.domain.recorded import Recorded
from undivided.projections.table import Rows
from undivided.store import functions
from undivided.store.batch import Fence, Guards, Write
from undivided.store.database import Connection, Database
from undivided.store.exchange import Call, HotConnection, exchange


class Appended(Struct, frozen=True):
    """What an append did: its coordinate, the events as recorded, the rows as folded."""

    coordinate: Coordinate
    events: tuple[Recorded, ...]
    rows: Rows


async def send(
    database: Database,
    connection: HotConnection,
    write: Write,
    guards: Guards,
    *after: Call,
) -> Appended:
    """Send a write, and what is to follow it in the same message; all of it happens or nothing.

    Raises:
        Conflict, StaleFlight: nothing was written.
    """
    await keep_blobs(connection, database.tenant, write.blobs)
    try:
        results = await exchange(connection, *write.calls, *after)
    except psycopg.Error as error:
        raise _refusal(error, guards.fence) from error
    return appended(database, results[write.told], write.events, write.rows)


def appended(
    database: Database, result: PGresult, events: tuple[Recorded, ...], rows: Rows
) -> Appended:
    """What a result that tells a coordinate and the time means."""
    last = result.ntuples - 1
    txid, position, clock = (result.get_value(last, column) or b"0" for column in range(3))
    database.clock.heard(datetime.fromisoformat(clock.decode()))
    return Appended(Coordinate(int(txid), int(position)), events, rows)


async def keep_blobs(connection: Connection, tenant: str, blobs: Mapping[str, bytes]) -> None:
    """Store what events refer to, before them; a blob nobody refers to does no harm.

    In the order of their names: two appends with the same texts must not wait crosswise.
    """
    for name, content in sorted(blobs.items()):
        await connection.execute(
            "INSERT INTO blobs (tenant, sha256, content) VALUES (%s, %s, %s)"
            " ON CONFLICT DO NOTHING",
            (tenant, name, content),
        )


def _refusal(error: psycopg.Error, fence: Fence | None) -> Exception:
    if error.sqlstate == functions.CONFLICT:
        told = msgspec.json.decode(error.diag.message_detail or "{}")
        return Conflict(told["stream"], told["expected"], told["actual"])
    if error.sqlstate == functions.STALE_FLIGHT and fence is not None:
        return StaleFlight(fence.agent_id, fence.epoch)
    return error
