"""Rebuilding rows from the log, with readers and writers at work all the time."""

from __future__ import annotations

import asyncio
from typing import Any

import psycopg
import pytest

from tests.support.lives import BY, accept, answer, begin, create, live, log_at
from tests.support.servers import Database
from tests.support.waiting import waits_for_lock
from undivided.domain import mailbox
from undivided.domain.errors import Corrupt, Invalid, Rejected
from undivided.domain.events.items import Payload
from undivided.store.checking import check
from undivided.store.rebuild import rebuild
from undivided.store.tables import PROJECTED

_LOOKS = """
SELECT 'constraint', conrelid::regclass::text, conname, pg_get_constraintdef(oid)
  FROM pg_constraint WHERE connamespace = 'public'::regnamespace
UNION ALL
SELECT 'index', tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'
UNION ALL
SELECT 'table', relname, pg_get_userbyid(relowner) || relacl::text,
       concat_ws(' ', reloptions::text, relpersistence)
  FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
UNION ALL
SELECT 'column', table_name, column_name, concat_ws(' ', ordinal_position, data_type, is_nullable,
       column_default, generation_expression)
  FROM information_schema.columns WHERE table_schema = 'public'
UNION ALL
SELECT 'schema', nspname, '', '' FROM pg_namespace WHERE nspname LIKE 'undivided%'
 ORDER BY 1, 2, 3, 4"""


def ask(url: str, statement: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


@pytest.fixture
async def lived(database: Database) -> Database:
    """A database on which two agents lived a little."""
    async with log_at(database.app_url) as log:
        await live(log, "ada")
        await live(log, "bob")
    return database


class TestWhatItLeaves:
    """Afterwards the rows are those of the log, and the database looks as before."""

    async def test_wrong_rows_are_right_again(self, lived: Database) -> None:
        before = await check(lived.app_url)
        ask(lived.owner_url, "DELETE FROM items")
        ask(lived.owner_url, "UPDATE agents SET waiting = 9, name = 'Eve'")
        ask(lived.owner_url, "UPDATE flights SET epoch = 1")
        ask(lived.owner_url, "INSERT INTO memories (id, agent_id, key, content, noted_at)"
                             " VALUES ('ada/plan', 'ada', 'plan', 'invented', now())")  # fmt: skip
        rebuilt = await rebuild(lived.owner_url)
        after = await check(lived.app_url)
        assert (after.wrong, after.rows) == ([], before.rows)
        assert rebuilt.events == before.events
        assert rebuilt.tables == tuple(table.name for table in PROJECTED)

    async def test_the_schema_is_the_same_to_the_last_name(self, lived: Database) -> None:
        """Constraints, indexes, owners, grants and settings: as the migrations made them."""
        before = ask(lived.owner_url, _LOOKS)
        await rebuild(lived.owner_url)
        assert ask(lived.owner_url, _LOOKS) == before

    async def test_one_projection_alone(self, lived: Database) -> None:
        ask(lived.owner_url, "DELETE FROM items")
        ask(lived.owner_url, "UPDATE agents SET name = 'Eve'")
        rebuilt = await rebuild(lived.owner_url, "items")
        assert rebuilt.tables == ("items",)
        wrong = {one.finding.subject for one in (await check(lived.app_url)).wrong}
        assert wrong == {"agents/ada", "agents/bob"}

    async def test_an_empty_log_makes_empty_tables(self, database: Database) -> None:
        assert (await rebuild(database.owner_url)).events == 0
        async with log_at(database.app_url) as log:
            await live(log, "ada")
        assert (await check(database.app_url)).wrong == []

    async def test_connections_that_were_open_before_go_on(self, lived: Database) -> None:
        """Their prepared statements and functions find the new tables."""
        async with log_at(lived.app_url) as log:
            for n in range(3):
                for m in range(6):  # often enough for server-side plans
                    await accept(log, "ada", f"message {n} {m}")
                    await log.view("ada", 5)
                await rebuild(lived.owner_url)
            flight = await begin(log, "ada")
            assert flight.agent.waiting == 18
        assert (await check(lived.app_url)).wrong == []


class TestWhileOthersWork:
    """Nobody notices but by a few milliseconds."""

    async def test_writers_and_readers_go_on(self, lived: Database) -> None:
        stop = asyncio.Event()
        counts: list[int] = []

        async def write(name: str) -> int:
            written = 0
            async with log_at(lived.app_url) as log:
                while not stop.is_set():
                    await live(log, f"{name}-{written}")
                    written += 1
            return written

        async def read() -> None:
            async with await psycopg.AsyncConnection.connect(
                lived.app_url, autocommit=True
            ) as connection:
                while not stop.is_set():
                    cursor = await connection.execute("SELECT count(*) FROM decisions")
                    counts.extend(count for (count,) in await cursor.fetchall())

        tasks = [asyncio.create_task(write("one")), asyncio.create_task(write("two"))]
        reading = asyncio.create_task(read())
        try:
            for _ in range(3):
                await rebuild(lived.owner_url)
        finally:
            stop.set()
            written = await asyncio.gather(*tasks)
            await reading
        assert min(written) > 0
        assert counts == sorted(counts), "a query saw fewer rows than one before it"
        assert counts[0] > 0
        assert (await check(lived.app_url)).wrong == []

    async def test_it_waits_for_an_append_under_way(self, lived: Database) -> None:
        """A row that was read before the change of places is written before it, too."""
        async with log_at(lived.app_url) as log:
            async with log.locked("ada") as tx:
                rebuilding = asyncio.create_task(rebuild(lived.owner_url))
                await waits_for_lock(lived.owner_url, "undivided rebuild")
                commands = (
                    mailbox.Accept(item_id="late", source_type="mention", payload=Payload("late")),
                )
                await tx.append([tx.addition(*mailbox.accept(tx.agent, commands))], BY)
            await rebuilding
            assert "late" in [item.id for item in (await log.view("ada", 9)).queue]
        assert (await check(lived.app_url)).wrong == []

    async def test_it_lets_a_fenced_append_through(self, lived: Database) -> None:
        """Whoever holds one lock and waits for another of ours gets it; the rebuild tries again."""
        async with log_at(lived.app_url) as log:
            await create(log, "eve")
            await accept(log, "eve", "hello")
            flight = await begin(log, "eve")
            with psycopg.connect(lived.app_url, autocommit=True) as reader:
                reader.execute("BEGIN")
                reader.execute("SELECT count(*) FROM flights")  # keeps the table where it is
                rebuilding = asyncio.create_task(rebuild(lived.owner_url))
                await waits_for_lock(lived.owner_url, "undivided rebuild")
                assert await answer(log, flight, "hello to you") is None
                reader.execute("ROLLBACK")
            await rebuilding
        assert (await check(lived.app_url)).wrong == []


class TestWhatItRefuses:
    """It changes everything or nothing, and says why."""

    async def test_an_unknown_projection(self, database: Database) -> None:
        with pytest.raises(Invalid, match="one of: agents, flights, items"):
            await rebuild(database.owner_url, "dreams")

    async def test_a_role_that_owns_nothing(self, database: Database) -> None:
        with pytest.raises(Rejected, match="DATABASE_OWNER_URL"):
            await rebuild(database.app_url)

    async def test_a_second_one_beside_it(self, database: Database) -> None:
        with psycopg.connect(database.owner_url, autocommit=True) as other:
            other.execute("SELECT pg_advisory_lock(7305813045)")
            with pytest.raises(Rejected, match="another rebuild"):
                await rebuild(database.owner_url)

    async def test_a_log_that_cannot_be_read(self, lived: Database) -> None:
        rows = ask(lived.owner_url, "SELECT id, name FROM agents ORDER BY id")
        ask(lived.owner_url, "ALTER TABLE events DISABLE TRIGGER events_append_only")
        ask(lived.owner_url, "UPDATE events SET type = 'agent.dreamt' WHERE type = 'turn.ended'")
        with pytest.raises(Corrupt, match=r"agent\.dreamt"):
            await rebuild(lived.owner_url)
        assert ask(lived.owner_url, "SELECT id, name FROM agents ORDER BY id") == rows
        assert ("schema", "undivided_shadow", "", "") not in ask(lived.owner_url, _LOOKS)

    async def test_what_a_dead_one_left_is_in_nobodys_way(self, lived: Database) -> None:
        ask(lived.owner_url, "CREATE SCHEMA undivided_shadow")
        ask(lived.owner_url, "CREATE TABLE undivided_shadow.agents (id int)")
        await rebuild(lived.owner_url)
        assert (await check(lived.app_url)).wrong == []
