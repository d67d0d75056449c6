"""A restored dump goes on in order, also if nobody thought of migrating."""

from __future__ import annotations

import asyncio

import psycopg

from tests.support.lives import accept, create, live, log_at
from tests.support.servers import Database
from undivided.store.checking import check


def start_ids_again(database: Database) -> None:
    """As after a restore: the ids of this cluster lie far below those of the dump."""
    with psycopg.connect(database.owner_url, autocommit=True) as connection:
        connection.execute("UPDATE log_base SET txid_base = txid_base - 1000000")


async def test_the_first_append_follows_what_the_dump_brought(database: Database) -> None:
    """Were it to sort before that, no reader that has seen the dump would ever see it."""
    async with log_at(database.app_url) as log:
        await live(log, "ada")
    start_ids_again(database)
    async with log_at(database.app_url) as log:
        await accept(log, "ada", "and so on")
        await create(log, "bob")
    with psycopg.connect(database.owner_url) as connection:
        rows = connection.execute(
            "SELECT stream FROM events ORDER BY txid DESC, position DESC LIMIT 2"
        ).fetchall()
    assert rows == [("agent:bob",), ("agent:ada",)]
    assert (await check(database.app_url)).wrong == []


async def test_many_processes_start_at_once(database: Database) -> None:
    """The base is raised once, whoever comes first."""
    async with log_at(database.app_url) as log:
        await create(log, "ada")
    start_ids_again(database)

    async def go_on(number: int) -> None:
        async with log_at(database.app_url) as log:
            await create(log, f"a{number}")

    await asyncio.gather(*(go_on(number) for number in range(8)))
    with psycopg.connect(database.owner_url) as connection:
        first = connection.execute("SELECT stream FROM events ORDER BY txid LIMIT 1").fetchone()
    assert first == ("agent:ada",)
    assert (await check(database.app_url)).wrong == []
