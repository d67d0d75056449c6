"""Reading the steps of a session back: a turn's state, and the history before it."""

from __future__ import annotations

from msgspec import Struct

from undivided.domain.dialogue import Said
from undivided.domain.errors import Corrupt
from undivided.domain.events.catalogue import Event
from undivided.domain.history import said_of
from undivided.domain.recorded import session_stream
from undivided.domain.state.session import TurnRow
from undivided.domain.turn import TurnState, evolve
from undivided.store.codec import blob_references, decode_event
from undivided.store.database import TENANT, Connection

_SAYING = [
    "turn.started", "turn.updated", "turn.nudged", "model.responded", "tool_call.finished",
    "message.posted", "activity.noted",
]  # fmt: skip
LATEST = 2**62
"""A version behind all that are."""
_PAGE = """
SELECT e.version FROM events e
 WHERE e.tenant = %s AND e.stream = %s AND e.version >= %s AND e.version < %s
   AND e.type = ANY(%s)
   AND (%s::text IS NULL OR e.data->>'turn_id' = %s)
 ORDER BY e.version DESC LIMIT %s"""


async def turn_state(connection: Connection, turn: TurnRow) -> tuple[TurnState, int]:
    """A turn folded from its recorded steps, and the version its session is at.

    Raises:
        Corrupt: the session does not begin the turn where its row says.
    """
    events, version = await _read(
        connection,
        "SELECT type, schema, data::text, version FROM events"
        " WHERE tenant = %s AND stream = %s AND version >= %s ORDER BY version",
        (session_stream(turn.session_id), turn.first_version),
    )
    state: TurnState | None = None
    for event in events:
        state = evolve(state, event)
    if state is None:
        raise Corrupt(f"session {turn.session_id} has no steps of turn {turn.id}")
    return state, version


async def said_before(
    connection: Connection, session_id: str, version: int, limit: int
) -> tuple[Said, ...]:
    """The last `limit` messages of a session up to `version`, oldest first."""
    events, _ = await _read(
        connection,
        "SELECT type, schema, data, version FROM (SELECT type, schema, data::text, version"
        " FROM events WHERE tenant = %s AND stream = %s AND version <= %s AND type = ANY(%s)"
        " ORDER BY version DESC LIMIT %s) newest ORDER BY version",
        (session_stream(session_id), version, _SAYING, limit),
    )
    said = (said_of(event) for event in events)
    return tuple(one for one in said if one is not None)


class Span(Struct, frozen=True):
    """A part of a session: versions from `first` to before `before`, or one turn's of them."""

    first: int = 1
    before: int = LATEST
    turn_id: str | None = None


class Page(Struct, frozen=True):
    """Some messages, oldest first; `before` is where they begin if there are earlier ones."""

    said: tuple[Said, ...]
    before: int | None


async def page_of(connection: Connection, session_id: str, span: Span, limit: int) -> Page:
    """The last `limit` messages of a part of a session."""
    where = session_stream(session_id), span.first, span.before, _SAYING
    values = (TENANT, *where, span.turn_id, span.turn_id, limit + 1)
    cursor = await connection.execute(_PAGE, values)
    versions = sorted(version for (version,) in await cursor.fetchall())
    earlier = len(versions) > limit
    shown = versions[1:] if earlier else versions
    if not shown:
        return Page((), None)
    events, _ = await _read(
        connection,
        "SELECT type, schema, data::text, version FROM events"
        " WHERE tenant = %s AND stream = %s AND version = ANY(%s) ORDER BY version",
        (session_stream(session_id), shown),
    )
    said = (said_of(event) for event in events)
    return Page(tuple(one for one in said if one is not None), shown[0] if earlier else None)


async def _read(
    connection: Connection, statement: str, parameters: tuple[object, ...]
) -> tuple[list[Event], int]:
    cursor = await connection.execute(statement, (TENANT, *parameters))
    rows = await cursor.fetchall()
    names = {name for row in rows for name in blob_references(row[2])}
    blobs = await load_blobs(connection, names) if names else {}
    found = (decode_event(row[0], row[1], row[2], blobs) for row in rows)
    return [event for event in found if event is not None], rows[-1][3] if rows else 0


async def load_blobs(connection: Connection, names: set[str]) -> dict[str, str]:
    """The contents of blobs, by their SHA-256."""
    cursor = await connection.execute(
        "SELECT sha256, content FROM blobs WHERE tenant = %s AND sha256 = ANY(%s)",
        (TENANT, list(names)),
    )
    return {name: bytes(content).decode() for name, content in await cursor.fetchall()}
