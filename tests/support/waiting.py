"""Seeing in Postgres that somebody really waits: races are staged, never slept."""

from __future__ import annotations

import asyncio

import psycopg


async def waits_for_lock(owner_url: str, application: str, patience_s: float = 10) -> None:
    """Wait until a connection of that name waits for a lock; only an owner may see that."""
    async with asyncio.timeout(patience_s):
        async with await psycopg.AsyncConnection.connect(owner_url, autocommit=True) as connection:
            while True:
                cursor = await connection.execute(
                    "SELECT 1 FROM pg_stat_activity WHERE application_name = %s"
                    " AND datname = current_database() AND wait_event_type = 'Lock'",
                    (application,),
                )
                if await cursor.fetchone():
                    return
                await asyncio.sleep(0.01)
