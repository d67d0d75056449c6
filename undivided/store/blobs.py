"""Contents that are too large for an event, fetched by what refers to them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from undivided.store.codec import blob_references
from undivided.store.database import Database

PAGE_BYTES = 4 * 1024 * 1024
"""How large an answer may become that could be asked for in pages."""


async def blob_texts(database: Database, stored: Iterable[str]) -> dict[str, str]:
    """The contents of every blob that stored JSON refers to, by its SHA-256."""
    names = {name for text in stored for name in blob_references(text)}
    if not names:
        return {}
    async with database.connection() as connection:
        cursor = await connection.execute(
            "SELECT sha256, content FROM blobs WHERE tenant = %s AND sha256 = ANY(%s)",
            (database.tenant, list(names)),
        )
        return {name: bytes(content).decode() for name, content in await cursor.fetchall()}


async def blob_sizes(database: Database, names: set[str]) -> dict[str, int]:
    """How many bytes each of these blobs has."""
    async with database.connection() as connection:
        cursor = await connection.execute(
            "SELECT sha256, octet_length(content) FROM blobs"
            " WHERE tenant = %s AND sha256 = ANY(%s)",
            (database.tenant, list(names)),
        )
        return dict(await cursor.fetchall())


async def how_many_fit(
    database: Database, stored: Sequence[str], max_bytes: int = PAGE_BYTES
) -> int:
    """How many of these stored JSONs fit, with the contents they refer to; one at least."""
    references = [blob_references(text) for text in stored]
    names = set().union(*references)
    sizes, total = await blob_sizes(database, names) if names else {}, 0
    for number, text in enumerate(stored):
        total += len(text) + sum(sizes.get(name, 0) for name in references[number])
        if number and total > max_bytes:
            return number
    return len(stored)
