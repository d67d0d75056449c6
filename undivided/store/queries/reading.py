"""A reading: of which database, and as of when."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from msgspec import Struct

from undivided.domain.coordinates import Coordinate
from undivided.domain.errors import Invalid
from undivided.domain.ids import checked_id
from undivided.store.database import Database
from undivided.store.horizon import seen


class Reading(Struct, frozen=True):
    """Where a query looks; `at` None means now."""

    database: Database
    at: Coordinate | None = None

    async def rows(self, statement: str, **values: Any) -> list[Any]:
        """The rows of one statement; `tenant` is given to each."""
        async with self.database.connection() as connection:
            cursor = await connection.execute(
                statement.encode(), {"tenant": self.database.tenant, **values}
            )
            return await cursor.fetchall()

    async def seen(self) -> str:
        """The coordinate up to which this reading has seen everything."""
        if self.at is not None:
            return str(self.at)
        return await seen(self.database)

    def past(self) -> dict[str, int]:
        """The coordinate as parameters of a statement; the end of time for now."""
        at = self.at or Coordinate(2**63 - 1, 2**63 - 1)
        return {"txid": at.txid, "position": at.position}


def is_id(text: str) -> bool:
    """Whether anything can be called so; what cannot need not be looked for."""
    try:
        checked_id(text, "id")
    except Invalid:
        return False
    return True


def is_event_id(text: str) -> bool:
    """Whether an event can be called so."""
    try:
        return str(UUID(text)) == text.lower()
    except ValueError:
        return False
