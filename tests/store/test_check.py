"""`undivided check`: silent over what is right, and red on whatever was tampered with."""

from __future__ import annotations

import psycopg
import pytest

from tests.support.lives import live, log_at
from tests.support.servers import Database
from undivided.store.checking import Checked, check


def rules(checked: Checked) -> set[tuple[int, str, str]]:
    return {(w.finding.invariant, w.finding.rule, w.finding.subject) for w in checked.wrong}


@pytest.fixture
async def lived(database: Database) -> Database:
    """A database on which two agents lived a little."""
    async with log_at(database.app_url) as log:
        await live(log, "ada")
        await live(log, "bob")
    return database


def tamper(database: Database, *statements: str) -> None:
    """Do what nobody may, as the owner."""
    with psycopg.connect(database.owner_url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


async def test_what_the_product_writes_is_right(lived: Database) -> None:
    checked = await check(lived.app_url)
    assert checked.wrong == []
    assert checked.events > 50
    assert checked.rows > 20


async def test_an_empty_database_is_right(database: Database) -> None:
    assert (await check(database.app_url)).found == 0
