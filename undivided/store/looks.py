"""What an append reads before it writes: an agent's view, a session, single rows.

Each is a hot statement, so that several leave in one message. A version is read before the rows
that are folded from its stream, or together with them: a row that is older than its version
would be folded on as if nothing were missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from psycopg.pq.abc import PGresult

from undivided.domain.errors import Corrupt, NotFound
from undivided.domain.recorded import session_stream
from undivided.domain.state.session import SessionRow
from undivided.domain.state.view import AgentView
from undivided.projections.table import BY_TABLE, Rows
from undivided.store.codec import escape_text, row_decoder, unescape_text
from undivided.store.exchange import Call, HotConnection, Statement, exchange

_VIEW = Statement(b"undivided_view", b"SELECT agent_view($1, $2, $3, $4)::text")
_SESSION = Statement(
    b"undivided_session",
    b"SELECT s.version, (SELECT to_jsonb(x)::text FROM sessions x"
    b" WHERE x.tenant = $1 AND x.id = $3) FROM streams s WHERE s.tenant = $1 AND s.stream = $2",
)
# One look into the key for each id: without statistics a planner may prefer to read all there is.
_LOOK = (
    "SELECT t.id, to_jsonb(t)::text FROM jsonb_array_elements_text($2::jsonb) k(id),"
    " LATERAL (SELECT * FROM {} x WHERE x.tenant = $1 AND x.id = k.id OFFSET 0) t"
)
_LOAD = {
    table: Statement(f"undivided_load_{table}".encode(), _LOOK.format(table).encode())
    for table in BY_TABLE
}
ROW_OF = {table: row_decoder(p.row) for table, p in BY_TABLE.items()}
"""Rows of each projected table from their stored JSON."""
_view_of = row_decoder(AgentView)


class SessionLook(Struct, frozen=True):
    """A session's row, and the version of its stream; None and 0 if it does not exist."""

    row: SessionRow | None
    version: int


def view_call(tenant: str, agent_id: str, queue: int, *, lock: bool) -> Call:
    """What reads an agent's view, under its row lock or without."""
    if "\x00" in agent_id:
        raise NotFound("there is no agent with NUL in its id")
    values = (tenant.encode(), agent_id.encode(), b"t" if lock else b"f", b"%d" % queue)
    return Call(_VIEW, values)


def view_in(result: PGresult, queue: int) -> AgentView:
    """The view that `view_call` was answered with, when it asked for so many items."""
    text = result.get_value(0, 0)
    if text is None:
        raise Corrupt("agent_view answered nothing")
    view = _view_of(text.decode())
    return replace(view, more=True) if len(view.queue) == queue > 0 else view


def session_call(tenant: str, session_id: str) -> Call:
    """What reads a session."""
    names = (tenant, session_stream(session_id), session_id)
    return Call(_SESSION, [name.encode() for name in names])


def session_in(result: PGresult) -> SessionLook:
    """The session that `session_call` was answered with."""
    if result.ntuples == 0:
        return SessionLook(None, 0)
    version, text = result.get_value(0, 0), result.get_value(0, 1)
    row = None if text is None else ROW_OF["sessions"](text.decode())
    return SessionLook(row, int(version or b"0"))


async def load_rows(connection: HotConnection, tenant: str, wanted: Mapping[str, set[str]]) -> Rows:
    """The rows that are wanted of each table, in one round trip; None where there is none."""
    if not wanted:
        return {}
    calls = [
        Call(_LOAD[table], (tenant.encode(), msgspec.json.encode([escape_text(i) for i in ids])))
        for table, ids in wanted.items()
    ]
    rows: dict[tuple[str, str], Any] = {
        (table, row_id): None for table, ids in wanted.items() for row_id in ids
    }
    for table, result in zip(wanted, await exchange(connection, *calls), strict=True):
        for n in range(result.ntuples):
            row_id, text = result.get_value(n, 0) or b"", result.get_value(n, 1) or b""
            rows[(table, unescape_text(row_id.decode()))] = ROW_OF[table](text.decode())
    return rows
