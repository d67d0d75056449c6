"""Commands that a client may send again: one effect and one answer for each `Idempotency-Key`."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from contextlib import suppress

from fastapi import Request, Response
from msgspec import Struct

from undivided.api.answers import JSON
from undivided.api.asked import MIB, principal
from undivided.api.parts import parts_of
from undivided.domain.errors import Conflict, Full, Invalid, NotFound, Rejected, Unavailable
from undivided.domain.recorded import Meta
from undivided.store import idempotency
from undivided.store.database import Connection, Database
from undivided.store.fresh import fresh_id
from undivided.store.idempotency import Answer, Effect, Mine

KEY_LIMIT = 255
CANONICAL_LIMIT = MIB
REFUSED = (NotFound, Rejected, Invalid, Full, Conflict)
"""After these it is certain that nothing was written."""


class Claim(Struct, frozen=True):
    """A request's right to take effect; `mine` None where it has no key."""

    database: Database
    meta: Meta
    mine: Mine | None = None

    def fresh_id(self, prefix: str) -> str:
        """An id for what the request makes: the same whenever it is carried out again."""
        if self.mine is None:
            return fresh_id(prefix)
        return f"{prefix}_{self.mine.mark.removeprefix('request:')[:26]}"

    async def earlier(self, connection: Connection) -> Effect | None:
        """What this request wrote before, if it did; asked right before it writes.

        Raises:
            Unavailable: too much time passed since the claim.
        """
        if self.mine is None:
            return None
        self.mine.check()
        if not self.mine.again:
            return None
        return await idempotency.effect_of(connection, self.database.tenant, self.mine)

    async def took_effect(self) -> bool:
        """Whether this request wrote anything."""
        if self.mine is None:
            return False
        async with self.database.connection() as connection:
            found = await idempotency.effect_of(connection, self.database.tenant, self.mine)
        return found is not None


Effecting = Callable[[Claim], Awaitable[Response]]


async def once(request: Request, raw: bytes, effect: Effecting) -> Response:
    """The answer of `effect`, or the one that the same request got before.

    Raises:
        Invalid: the key was used for another request, or is no key.
        Unavailable: the first request with this key is still at work.
    """
    key, actor = request.headers.get("idempotency-key"), principal(request)
    database = parts_of(request).database
    if key is None:
        return await effect(Claim(database, Meta(actor=actor)))
    if not 0 < len(key) <= KEY_LIMIT:
        raise Invalid(f"an idempotency key has 1 to {KEY_LIMIT} characters", "Idempotency-Key")
    same = idempotency.print_of(request.method, request.url.path, _canonical(raw))
    claimed = await idempotency.claim(database, key, same)
    if isinstance(claimed, Answer):
        return Response(claimed.body, claimed.status, media_type=JSON)
    try:
        told = await effect(Claim(database, Meta(actor=actor, causation=claimed.mark), claimed))
    except REFUSED:
        await idempotency.forget(database, claimed)
        raise
    with suppress(Unavailable):  # it took effect; the next who asks finds that in the log
        await idempotency.keep(database, claimed, Answer(told.status_code, bytes(told.body)))
    return told


def _canonical(raw: bytes) -> bytes:
    """A body without the accidents of how it was written down; a large one as it is."""
    if len(raw) > CANONICAL_LIMIT:
        return raw
    try:
        return json.dumps(json.loads(raw), sort_keys=True).encode("ascii")
    except (ValueError, RecursionError):
        return raw
