"""The plainest service: FastAPI, one asynchronous pool, one statement a request.

    web.py PORT

`POST /rows` inserts one event row, `GET /rows/{id}` reads one row by an index.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import orjson
import uvicorn
from fastapi import FastAPI, Response
from psycopg_pool import AsyncConnectionPool
from pydantic import BaseModel

from undivided.cli.bench import samples
from undivided.cli.bench.references.writer import INSERT, row
from undivided.store.fresh import fresh_event_id

POOL = 16
_ONE = "SELECT data::text FROM events WHERE tenant = 'default' AND stream = %s AND version = 1"


class Body(BaseModel):
    """What a client sends: the same as to us."""

    sourceType: str  # noqa: N815 -- the name in JSON
    payload: dict[str, str]
    metadata: dict[str, str]


def application() -> FastAPI:
    """The whole service."""
    pool: AsyncConnectionPool = AsyncConnectionPool(
        os.environ["DATABASE_URL"],
        min_size=POOL,
        max_size=POOL,
        open=False,
        kwargs={"autocommit": True},
    )
    name, _, meta = samples.stored(samples.accepted("agt_reference"))

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        async with pool:
            yield

    app = FastAPI(lifespan=lifespan)

    @app.post("/rows", status_code=202)
    async def insert(body: Body) -> Response:
        stream = f"reference:{fresh_event_id()}"
        stored = (name, orjson.dumps(body.model_dump()).decode(), meta)
        async with pool.connection() as connection:
            await connection.execute(INSERT, row(stream, 1, stored))
        return Response(orjson.dumps({"stream": stream}), 202, media_type="application/json")

    @app.get("/rows/{stream}")
    async def read(stream: str) -> Response:
        async with pool.connection() as connection:
            cursor = await connection.execute(_ONE, (stream,))
            found = await cursor.fetchone()
        if found is None:
            return Response(b"{}", 404, media_type="application/json")
        return Response(found[0], media_type="application/json")

    return app


if __name__ == "__main__":
    uvicorn.run(
        application(),
        port=int(sys.argv[1]),
        loop="uvloop",
        http="httptools",
        log_level="warning",
        access_log=False,
    )
