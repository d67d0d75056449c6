"""The plainest writer: psycopg, one event row, one statement, in autocommit."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

import psycopg

from undivided.store.fresh import fresh_event_id

INSERT = (
    "INSERT INTO events (txid, id, tenant, stream, version, type, schema, data, meta,"
    " recorded_at, bytes) VALUES (%s, %s, 'default', %s, %s, %s, 1, %s, %s, %s, %s)"
)


class Writer:
    """Writes the same row as an append does, into the same table, under streams of its own."""

    def __init__(self, url: str, stored: tuple[str, str, str]) -> None:
        self._connection = psycopg.connect(url, autocommit=True)
        self._stored = stored
        self._stream, self._version = f"reference:{fresh_event_id()}", 0

    def write(self) -> None:
        """One row, durable when this returns."""
        self._version += 1
        self._connection.execute(INSERT, row(self._stream, self._version, self._stored))

    def rate(self, times: int) -> float:
        """Rows per second."""
        began = time.perf_counter()
        for _ in range(times):
            self.write()
        return times / (time.perf_counter() - began)

    def count(self, seconds: float) -> int:
        """How many rows fit into `seconds`."""
        until, written = time.perf_counter() + seconds, 0
        while time.perf_counter() < until:
            self.write()
            written += 1
        return written

    def close(self) -> None:
        """Hang up."""
        self._connection.close()


class AsyncWriter:
    """The same through psycopg's asyncio connection, which is what a service can use."""

    def __init__(self, connection: psycopg.AsyncConnection[Any], stored: tuple[str, str, str]):
        self._connection, self._stored = connection, stored
        self._stream, self._version = f"reference:{fresh_event_id()}", 0

    async def write(self) -> None:
        """One row, durable when this returns."""
        self._version += 1
        await self._connection.execute(INSERT, row(self._stream, self._version, self._stored))


def row(stream: str, version: int, stored: tuple[str, str, str]) -> tuple[object, ...]:
    """The parameters of `INSERT`; `stored` is the event's name, data and meta."""
    name, data, meta = stored
    now = datetime.now(UTC)
    return (0, fresh_event_id(), stream, version, name, data, meta, now, len(data))
