"""How far a reader may look: the coordinate up to which the log is settled.

Positions are drawn before commit, so that a reader that simply takes the newest event can skip
one that is still being written. No event with a transaction id below the oldest transaction in
flight can appear any more: that is the horizon, and nobody reads past it in order. A rolled-back
append leaves no trace here; only a transaction that is still open holds the horizon back.
"""

from __future__ import annotations

import asyncio
from datetime import datetime

from msgspec import Struct

from undivided.domain.coordinates import ORIGIN, Coordinate, parse_coordinate
from undivided.domain.errors import Corrupt, Invalid, Undivided
from undivided.store.database import Database

_SEEN = """
SELECT txid || '-' || position FROM events
 WHERE txid < (SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint + txid_base
                 FROM log_base)
 ORDER BY txid DESC, position DESC LIMIT 1"""
_HORIZON = """
SELECT pg_snapshot_xmin(s)::text::bigint + txid_base, pg_snapshot_xmax(s)::text::bigint + txid_base,
       clock_timestamp()
  FROM log_base, pg_current_snapshot() s"""
_AT_TIME = """
SELECT txid, position FROM events
 WHERE tenant = %s AND recorded_at <= %s AND NOT meta ? 'imported'
   AND txid < (SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint + txid_base
                 FROM log_base)
 ORDER BY txid DESC, position DESC LIMIT 1"""

PATIENCE_S = 5.0
_FIRST_LOOK_S, _LONGEST_LOOK_S = 0.005, 0.1


class NotReached(Undivided):
    """The log has not come to the position that the caller asked to see."""

    code = "position_not_reached"


class BadCoordinate(Invalid):
    """No coordinate that can be read at; `code` says why."""

    def __init__(self, code: str, text: str, field: str = "at") -> None:
        super().__init__(text, field)
        self.code = code


class Horizon(Struct, frozen=True):
    """`settled`: the first transaction id not settled yet; `begun`: the first not given out."""

    settled: int
    begun: int
    now: datetime


async def horizon(database: Database) -> Horizon:
    """Where the log is settled up to, and Postgres' time."""
    async with database.connection() as connection:
        cursor = await connection.execute(_HORIZON)
        row = await cursor.fetchone()
    if row is None:
        raise Corrupt("log_base is empty; run `undivided migrate`")
    return Horizon(*row)


async def seen(database: Database) -> str:
    """The newest settled coordinate, as a token."""
    async with database.connection() as connection:
        cursor = await connection.execute(_SEEN)
        row = await cursor.fetchone()
    return str(row[0]) if row else str(ORIGIN)


async def wait_until_seen(database: Database, token: str, patience_s: float = PATIENCE_S) -> None:
    """Wait until everything up to a coordinate is settled.

    Raises:
        BadCoordinate: the token is malformed.
        NotReached: it is still not settled after `patience_s` seconds, or not even begun.
    """
    wanted = _coordinate(token, "minPosition")
    if not await _settles(database, wanted, patience_s):
        raise NotReached(f"the log has not come to {token}; ask again, or without minPosition")


async def resolve(database: Database, at: str) -> Coordinate:
    """The coordinate that `at=` means: a token, or the last one up to a timestamp.

    Raises:
        BadCoordinate: it is malformed, or from the future.
    """
    if ":" in at:
        return await _at_time(database, _timestamp(at))
    wanted = _coordinate(at, "at")
    if not await _settles(database, wanted, PATIENCE_S):
        raise BadCoordinate("position_from_the_future", f"the log has not come to {at} yet")
    return wanted


async def _settles(database: Database, wanted: Coordinate, patience_s: float) -> bool:
    clock = asyncio.get_running_loop().time
    until, pause_s = clock() + patience_s, _FIRST_LOOK_S
    while True:
        now = await horizon(database)
        if wanted.txid < now.settled:
            return True
        if wanted.txid >= now.begun or clock() + pause_s > until:
            return False
        await asyncio.sleep(pause_s)
        pause_s = min(2 * pause_s, _LONGEST_LOOK_S)


async def _at_time(database: Database, at: datetime) -> Coordinate:
    if at > (await horizon(database)).now:
        raise BadCoordinate("position_from_the_future", f"{at.isoformat()} has not come yet")
    async with database.connection() as connection:
        cursor = await connection.execute(_AT_TIME, (database.tenant, at))
        row = await cursor.fetchone()
    return Coordinate(*row) if row else ORIGIN


def _coordinate(token: str, field: str) -> Coordinate:
    try:
        return parse_coordinate(token)
    except Invalid as error:
        raise BadCoordinate("position_malformed", str(error), field) from error


def _timestamp(text: str) -> datetime:
    try:
        at = datetime.fromisoformat(text.strip().replace(" ", "+"))
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        raise BadCoordinate(
            "position_malformed",
            f"{text[:60]!r} is neither a coordinate nor a time like 2026-01-31T14:03:00Z",
        )
    return at
