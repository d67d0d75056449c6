"""Idempotency keys: the same key and the same request, one effect and one answer.

A key is claimed by a row of its own before the effect begins. Whoever finds it claimed waits for
the answer. A claim whose maker died is taken over after `LEASE_S`; because the effect and its
answer are two transactions, whoever takes over first looks whether the effect is in the log
already: every event of a keyed request carries the key's mark as its causation. A slow maker
cannot come in late: it checks, under the lock that its effect needs, that its time is not over.
"""

from __future__ import annotations

import asyncio
import time
from hashlib import sha256

from msgspec import Struct

from undivided.domain.coordinates import Coordinate
from undivided.domain.errors import Invalid, Unavailable
from undivided.store.database import Connection, Database

LEASE_S = 6.0
"""How long a claim without an answer is believed to be at work."""
EFFECT_WITHIN_S = 3.0
"""How long after its claim a maker may still append; well below the lease."""
WAIT_S = 30.0
KEPT_FOR_S = 24 * 3600
_FIRST_LOOK_S, _LONGEST_LOOK_S = 0.01, 0.25


class KeyReused(Invalid):
    """The key belongs to another request."""

    code = "idempotency_key_reused"

    def __init__(self, key: str) -> None:
        super().__init__(
            f"the idempotency key {key[:60]!r} was used for another request; use a fresh one",
            "Idempotency-Key",
        )


_CLAIM = """
INSERT INTO idempotency AS i (tenant, key, request) VALUES (%s, %s, %s)
ON CONFLICT (tenant, key) DO UPDATE SET kept_at = clock_timestamp()
 WHERE i.request = excluded.request AND i.status IS NULL
   AND i.kept_at < clock_timestamp() - make_interval(secs => %s)
RETURNING xmax <> 0"""
_LOOK = "SELECT request, status, answer FROM idempotency WHERE tenant = %s AND key = %s"
_KEEP = "UPDATE idempotency SET status = %s, answer = %s WHERE tenant = %s AND key = %s"
_FORGET = "DELETE FROM idempotency WHERE tenant = %s AND key = %s AND status IS NULL"
_PRUNE = "DELETE FROM idempotency WHERE kept_at < now() - make_interval(secs => %s)"
_EFFECT = """
SELECT txid, position, data->>'item_id' FROM events
 WHERE meta->>'causation' = %s AND meta ? 'causation' AND tenant = %s ORDER BY txid, position"""


class Answer(Struct, frozen=True):
    """What was answered to the first request with a key."""

    status: int
    body: bytes


class Mine(Struct, frozen=True):
    """The key is this request's to carry out; `again` if an earlier maker may have done it."""

    key: str
    mark: str
    again: bool
    since: float

    def check(self) -> None:
        """Refuse to go on once somebody else may have taken over.

        Raises:
            Unavailable: too much time passed since the claim.
        """
        if _steady() - self.since > EFFECT_WITHIN_S:
            raise Unavailable("this took too long; send it again with the same key")


def mark_of(key: str) -> str:
    """The causation that events of a keyed request carry."""
    return "request:" + sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:40]


def print_of(method: str, path: str, raw: bytes) -> str:
    """What makes two requests the same."""
    return sha256(b"\0".join((method.encode(), path.encode("utf-8", "replace"), raw))).hexdigest()


async def claim(database: Database, key: str, request: str) -> Mine | Answer:
    """Claim a key, or wait for the answer of whoever has it.

    Raises:
        Invalid: the key was used for another request.
        Unavailable: whoever has it is still at work.
    """
    clock = asyncio.get_running_loop().time
    until, pause_s = clock() + WAIT_S, _FIRST_LOOK_S
    while True:
        since = _steady()
        taken_over = await _try_claim(database, key, request)
        if taken_over is not None:
            return Mine(key, mark_of(key), taken_over, since)
        answer = await _wait(database, key, request, min(until, clock() + LEASE_S), pause_s)
        if answer is not None:
            return answer
        if clock() > until:
            raise Unavailable("the first request with this key is still at work; ask again")
        pause_s = _LONGEST_LOOK_S


async def _try_claim(database: Database, key: str, request: str) -> bool | None:
    async with database.connection() as connection:
        cursor = await connection.execute(_CLAIM, (database.tenant, key, request, LEASE_S))
        row = await cursor.fetchone()
    return bool(row[0]) if row else None


async def _wait(
    database: Database, key: str, request: str, until: float, pause_s: float
) -> Answer | None:
    """The answer, once it is there; None if the claim was given up or grew old."""
    clock = asyncio.get_running_loop().time
    while True:
        async with database.connection() as connection:
            cursor = await connection.execute(_LOOK, (database.tenant, key))
            row = await cursor.fetchone()
        if row is None:
            return None
        known, status, body = row
        if known != request:
            raise KeyReused(key)
        if status is not None:
            return Answer(status, bytes(body))
        if clock() + pause_s > until:
            return None
        await asyncio.sleep(pause_s)
        pause_s = min(2 * pause_s, _LONGEST_LOOK_S)


async def keep(database: Database, mine: Mine, answer: Answer) -> None:
    """Keep the answer for whoever sends the request again."""
    async with database.connection() as connection:
        await connection.execute(_KEEP, (answer.status, answer.body, database.tenant, mine.key))


async def forget(database: Database, mine: Mine) -> None:
    """Give a claim up: nothing took effect, and the request may be sent again."""
    async with database.connection() as connection:
        await connection.execute(_FORGET, (database.tenant, mine.key))


class Effect(Struct, frozen=True):
    """What an earlier maker of a request wrote: the items it is about, in order, and where."""

    items: tuple[str, ...]
    coordinate: Coordinate


async def effect_of(connection: Connection, tenant: str, mine: Mine) -> Effect | None:
    """What is in the log of this request already; None if nothing is."""
    cursor = await connection.execute(_EFFECT, (mine.mark, tenant))
    rows = await cursor.fetchall()
    if not rows:
        return None
    items = tuple(item_id for _, _, item_id in rows if item_id is not None)
    return Effect(items, Coordinate(rows[-1][0], rows[-1][1]))


async def prune(database: Database) -> int:
    """Remove answers older than a day; answers how many."""
    async with database.connection() as connection:
        cursor = await connection.execute(_PRUNE, (KEPT_FOR_S,))
        return cursor.rowcount


def _steady() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)
