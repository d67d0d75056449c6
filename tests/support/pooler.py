"""A pooler in transaction mode, as small as can be: it lends two backends out per transaction.

A client logs in through a backend of its own, which then goes to the pool; between two
transactions it has none. The backend used last is lent first, as in the usual poolers.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from psycopg.conninfo import conninfo_to_dict

Reader = asyncio.StreamReader
Writer = asyncio.StreamWriter


@dataclass
class Backend:
    """One connection to the real server."""

    reader: Reader
    writer: Writer


class Pooler:
    """Everything that the clients of one pooler share."""

    def __init__(self, url: str) -> None:
        self._there = conninfo_to_dict(url)
        self._free: list[Backend] = []
        self._returned = asyncio.Condition()

    async def serve(self, reader: Reader, writer: Writer) -> None:
        """Serve one client from its login to its leaving."""
        try:
            await self._login(reader, writer)
            while await self._transaction(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _login(self, reader: Reader, writer: Writer) -> None:
        backend = await self._connect()
        head = await reader.readexactly(4)
        backend.writer.write(head + await reader.readexactly(struct.unpack("!I", head)[0] - 4))
        while (answer := await _message(backend.reader))[:1] != b"Z":
            writer.write(answer)
            await writer.drain()
            if answer[:1] == b"R" and answer[5:9] in {b"\0\0\0\x0a", b"\0\0\0\x0b"}:
                backend.writer.write(await _message(reader))  # the next move of the password game
        writer.write(answer)
        await self._give_back(backend, 0)

    async def _transaction(self, reader: Reader, writer: Writer) -> bool:
        """Pass on one transaction; False when the client leaves instead."""
        if (message := await _message(reader))[:1] == b"X":
            return False
        async with self._returned:
            await self._returned.wait_for(lambda: self._free)
            backend = self._free.pop()
        status = b"T"
        while True:
            backend.writer.write(message)
            if message[:1] in b"QS":  # what the server answers with a ReadyForQuery
                status = await _answers(backend.reader, writer)
                if status == b"I":
                    break
            message = await _message(reader)
        await self._give_back(backend, len(self._free))
        return True

    async def _give_back(self, backend: Backend, place: int) -> None:
        async with self._returned:
            self._free.insert(place, backend)
            self._returned.notify_all()

    async def _connect(self) -> Backend:
        host, port = str(self._there["host"]), str(self._there.get("port", 5432))
        if host.startswith("/"):
            return Backend(*await asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}"))
        return Backend(*await asyncio.open_connection(host, int(port)))

    def close(self) -> None:
        """Close what the pool holds."""
        for backend in self._free:
            backend.writer.close()


@asynccontextmanager
async def transaction_pooler(url: str) -> AsyncIterator[str]:
    """Put a pooler before the database at `url`; gives the address through it."""
    pooler = Pooler(url)
    server = await asyncio.start_server(pooler.serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    there = conninfo_to_dict(url)
    who = f"{there['user']}:{there['password']}"
    try:
        yield (
            f"postgresql://{who}@{host}:{port}/{there['dbname']}?sslmode=disable&gssencmode=disable"
        )
    finally:
        server.close()
        pooler.close()


async def _message(reader: Reader) -> bytes:
    head = await reader.readexactly(5)
    return head + await reader.readexactly(struct.unpack("!I", head[1:])[0] - 4)


async def _answers(reader: Reader, writer: Writer) -> bytes:
    """Pass on answers up to ReadyForQuery; gives its transaction status."""
    while True:
        answer = await _message(reader)
        writer.write(answer)
        if answer[:1] == b"Z":
            await writer.drain()
            return answer[5:6]
