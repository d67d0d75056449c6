"""Uploaded recordings: what a `rehearsal:recording:<sha256>` model answers with."""

from __future__ import annotations

import hashlib

from undivided.domain.errors import NotFound
from undivided.store.database import Database


async def keep_recording(database: Database, content: bytes) -> str:
    """Store a recording; answers its id, the SHA-256 of its bytes. Twice is once."""
    name = hashlib.sha256(content).hexdigest()
    async with database.connection() as connection:
        await connection.execute(
            "INSERT INTO blobs (tenant, sha256, content) VALUES (%s, %s, %s)"
            " ON CONFLICT DO NOTHING",
            (database.tenant, name, content),
        )
    return name


async def load_recording(database: Database, name: str) -> bytes:
    """The bytes of a recording.

    Raises:
        NotFound: nothing was uploaded under this id.
    """
    async with database.connection() as connection:
        cursor = await connection.execute(
            "SELECT content FROM blobs WHERE tenant = %s AND sha256 = %s", (database.tenant, name)
        )
        row = await cursor.fetchone()
    if row is None:
        raise NotFound(f"there is no recording {name}; upload it to /api/recordings first")
    return bytes(row[0])
