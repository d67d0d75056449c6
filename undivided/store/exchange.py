"""The hot statements: prepared once for each connection, and sent together in one message.

A round trip costs more than most statements do, and a driver's cursor more than the round trip.
So the few statements that every append and every view go through are sent to the server as they
are: prepared, pipelined, with text in and text out, and read by a loop of our own: the driver's
serves every case and costs half as much again. Measured against cursors, accepting one stimulus
takes two thirds of the time (`undivided bench --rows accept`).

A connection whose exchange was broken off half-way is closed, never lent again: nobody could
tell which answer belongs to which question.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct
from psycopg import AsyncConnection, OperationalError, errors
from psycopg.abc import PQGen
from psycopg.pq import ExecStatus, PipelineStatus
from psycopg.pq.abc import PGconn, PGresult
from psycopg.rows import TupleRow


class Statement(Struct, frozen=True):
    """A statement that is prepared under its name; parameters are `$1`, `$2`, …, all text."""

    name: bytes
    text: bytes


class Call(Struct, frozen=True):
    """A statement with its parameters; None is NULL."""

    statement: Statement
    values: Sequence[bytes | None] = ()


class HotConnection(AsyncConnection[TupleRow]):
    """A connection that knows which hot statements are prepared on it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.prepared: set[bytes] = set()

    def _deallocate(self, name: bytes | None) -> PQGen[None]:
        """What psycopg does after a ROLLBACK or DROP of its own forgets our statements as well."""
        if name is None:
            self.prepared.clear()
        yield from super()._deallocate(name)


BEGIN = Call(Statement(b"undivided_begin", b"BEGIN"))
COMMIT = Call(Statement(b"undivided_commit", b"COMMIT"))
ROLLBACK = Call(Statement(b"undivided_rollback", b"ROLLBACK"))


def text_array(parts: Iterable[str]) -> bytes:
    """Strings as the text of a Postgres array."""
    quoted = (part.replace("\\", "\\\\").replace('"', '\\"') for part in parts)
    return ("{" + ",".join(f'"{part}"' for part in quoted) + "}").encode()


async def exchange(connection: HotConnection, *calls: Call) -> list[PGresult]:
    """Send `calls` together; answers one result each, in order.

    What says BEGIN goes on until COMMIT, anything else is one transaction of its own. After a
    call that fails, those that follow it are not run. Whoever has borrowed the connection has it
    alone, so that nothing is locked here.

    Raises:
        psycopg.Error: what the first call that failed was refused with.
    """
    named = {call.statement.name: call.statement for call in calls}
    missing = [named[name] for name in named if name not in connection.prepared]
    pgconn = connection.pgconn
    try:
        await _send(pgconn, missing, calls)
        results = [await _result(pgconn) for _ in range(len(missing) + len(calls))]
        await _answered(pgconn)
        pgconn.get_result()  # of the sync
        pgconn.exit_pipeline_mode()
    finally:
        if pgconn.pipeline_status != PipelineStatus.OFF:
            await connection.close()
    for statement, result in zip(missing, results, strict=False):
        if result.status == ExecStatus.COMMAND_OK:
            connection.prepared.add(statement.name)
    for result in results:
        if result.status == ExecStatus.FATAL_ERROR:
            raise errors.error_from_result(result, encoding="utf-8")
    return results[len(missing) :]


async def _send(pgconn: PGconn, missing: Sequence[Statement], calls: Sequence[Call]) -> None:
    pgconn.enter_pipeline_mode()
    for statement in missing:
        pgconn.send_prepare(statement.name, statement.text)
    for call in calls:
        pgconn.send_query_prepared(call.statement.name, call.values)
    pgconn.pipeline_sync()
    while pgconn.flush():  # more than the socket takes at once, and it may want to answer first
        await _ready(pgconn.socket, writing=True)
        pgconn.consume_input()


async def _result(pgconn: PGconn) -> PGresult:
    await _answered(pgconn)
    result = pgconn.get_result()
    if result is None:
        raise OperationalError("the server answered less than it was asked")
    await _answered(pgconn)
    pgconn.get_result()  # the end of this call's answer
    return result


async def _answered(pgconn: PGconn) -> None:
    while pgconn.is_busy():
        await _ready(pgconn.socket, writing=False)
        pgconn.consume_input()


async def _ready(socket: int, *, writing: bool) -> None:
    """Wait until the socket has something to read or, if asked, takes more."""
    loop = asyncio.get_running_loop()
    ready = loop.create_future()
    loop.add_reader(socket, _settle, ready)
    if writing:
        loop.add_writer(socket, _settle, ready)
    try:
        await ready
    finally:
        loop.remove_reader(socket)
        if writing:
            loop.remove_writer(socket)


def _settle(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)
