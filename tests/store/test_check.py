"""`undivided check`: silent over what is right, and red on whatever was tampered with."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from tests.support.lives import BY, accept, begin, create, live, log_at
from tests.support.servers import Database
from undivided.domain.dialogue import Usage
from undivided.domain.errors import Corrupt
from undivided.domain.events import flights as f
from undivided.domain.events import sessions as s
from undivided.domain.outcomes import Completed
from undivided.store import horizon
from undivided.store.checking import Checked, check
from undivided.store.repairing import repair


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


async def test_it_is_exact_while_writers_go_on(lived: Database) -> None:
    """Nobody stops for a check, and no row that moved under it is called wrong."""
    stop = asyncio.Event()

    async def write() -> int:
        written = 0
        async with log_at(lived.app_url) as log:
            while not stop.is_set():
                await live(log, f"agent-{written}")
                written += 1
        return written

    writing = asyncio.create_task(write())
    try:
        for _ in range(3):
            checked = await check(lived.app_url)
            assert checked.wrong == []
    finally:
        stop.set()
        assert await writing > 0


async def test_it_holds_back_no_reader_of_the_log(lived: Database) -> None:
    """While a check is under way, what is appended is settled at once."""
    seen: list[str] = []

    async def append_and_look() -> None:
        async with log_at(lived.app_url) as log:
            await create(log, "while-checking")
            seen.append(await horizon.seen(log.database))
            newest = await newest_coordinate(lived)
            assert seen[-1] == newest

    in_between: list[asyncio.Task[None]] = []

    def on_progress(_done: int, _total: int) -> None:
        in_between.append(asyncio.ensure_future(append_and_look()))

    await check(lived.app_url, on_progress)
    await asyncio.gather(*in_between)
    assert seen


class TestRows:
    """10: rows are what the log says."""

    async def test_a_row_that_differs_is_found(self, lived: Database) -> None:
        tamper(lived, "UPDATE agents SET waiting = waiting + 7 WHERE id = 'ada'")
        checked = await check(lived.app_url)
        assert rules(checked) == {(10, "row_differs", "agents/ada")}
        finding = checked.wrong[0].finding
        assert finding.text == "waiting is 8, the log says 1"
        assert finding.stream == "agent:ada"
        assert finding.where == str(checked.horizon)

    async def test_a_column_that_only_an_index_reads_is_compared_too(self, lived: Database) -> None:
        tamper(lived, "UPDATE items SET not_before = now() + '1 day' WHERE status = 'queued'"
                      " AND agent_id = 'ada'")  # fmt: skip
        (finding,) = [wrong.finding for wrong in (await check(lived.app_url)).wrong]
        assert finding.rule == "row_differs"
        assert "not_before" in finding.text

    async def test_a_row_that_is_missing_is_found(self, lived: Database) -> None:
        tamper(lived, "DELETE FROM sessions WHERE agent_id = 'bob'")
        assert rules(await check(lived.app_url)) == {(10, "row_missing", "sessions/ses_bob")}

    async def test_a_row_without_history_is_found(self, lived: Database) -> None:
        tamper(lived, "INSERT INTO memories (id, agent_id, key, content, noted_at)"
                      " VALUES ('ada/plan', 'ada', 'plan', 'invented', now())")  # fmt: skip
        assert rules(await check(lived.app_url)) == {
            (10, "row_without_history", "memories/ada/plan")
        }

    async def test_a_row_that_cannot_be_read_is_found(self, lived: Database) -> None:
        tamper(lived, "UPDATE agents SET attention = '{\"type\": \"dreaming\"}' WHERE id = 'ada'")
        assert rules(await check(lived.app_url)) == {(10, "row_unreadable", "agents/ada")}

    async def test_a_number_that_is_written_another_way_is_the_same(self, lived: Database) -> None:
        """1 and 1.0 are two texts and one number."""
        tamper(
            lived,
            "UPDATE agents SET policy = jsonb_set(policy, '{toolTimeoutS}', '300.0')",
            "UPDATE agents SET policy = jsonb_set(policy, '{coalesceWindowMs}', '200')",
        )
        assert (await check(lived.app_url)).found == 0

    async def test_a_stream_whose_version_is_wrong_is_found(self, lived: Database) -> None:
        tamper(
            lived,
            "UPDATE streams SET version = version + 1 WHERE stream = 'agent:ada'",
            "DELETE FROM streams WHERE stream = 'agent:bob'",
        )
        assert rules(await check(lived.app_url)) == {
            (10, "stream_version_differs", "streams/agent:ada"),
            (10, "stream_version_differs", "streams/agent:bob"),
        }

    async def test_many_findings_are_counted_and_the_first_are_told(self, lived: Database) -> None:
        tamper(lived, "INSERT INTO memories (id, agent_id, key, content, noted_at)"
                      " SELECT 'ada/' || n, 'ada', n::text, '', now()"
                      " FROM generate_series(1, 1500) n")  # fmt: skip
        checked = await check(lived.app_url)
        assert (checked.found, len(checked.wrong)) == (1500, 1000)


class TestHistory:
    """0 to 5: what is in the log itself."""

    async def test_an_event_that_was_taken_out_is_found(self, lived: Database) -> None:
        tamper(lived, "ALTER TABLE events DISABLE TRIGGER events_append_only",
               "DELETE FROM events WHERE stream = 'session:ses_ada' AND type = 'turn.ended'"
               " AND version < 20")  # fmt: skip
        found = {wrong.finding.invariant for wrong in (await check(lived.app_url)).wrong}
        assert {0, 3} <= found

    async def test_an_event_that_was_changed_is_found(self, lived: Database) -> None:
        tamper(lived, "ALTER TABLE events DISABLE TRIGGER events_append_only",
               "UPDATE events SET data = jsonb_set(data, '{epoch}', '1')"
               " WHERE type = 'turn.ended' AND stream = 'session:ses_ada'")  # fmt: skip
        assert (1, "stale_epoch", "ada") in rules(await check(lived.app_url))

    async def test_an_event_that_cannot_be_read_stops_the_check(self, lived: Database) -> None:
        tamper(lived, "ALTER TABLE events DISABLE TRIGGER events_append_only",
               "UPDATE events SET type = 'agent.dreamt' WHERE type = 'agent.created'")  # fmt: skip
        with pytest.raises(Corrupt, match=r"agent\.dreamt"):
            await check(lived.app_url)


class TestRepair:
    """What can be mended is mended; the rest stays a finding."""

    async def test_rows_and_versions_are_made_anew(self, lived: Database) -> None:
        before = await check(lived.app_url)
        tamper(
            lived,
            "UPDATE agents SET waiting = 0, name = 'Eve' WHERE id = 'ada'",
            "UPDATE agents SET attention = '{\"type\": \"dreaming\"}' WHERE id = 'bob'",
            "DELETE FROM sessions WHERE agent_id = 'bob'",
            "DELETE FROM notices",
            "UPDATE flights SET epoch = 1",
            "INSERT INTO memories (id, agent_id, key, content, noted_at)"
            " VALUES ('ada/plan', 'ada', 'plan', 'invented', now())",
            "UPDATE streams SET version = version + 1 WHERE stream = 'agent:ada'",
            "DELETE FROM streams WHERE stream = 'agent:bob'",
        )
        checked = await check(lived.app_url)
        repairs = await repair(lived.app_url, checked)
        assert {one.wrong.finding.subject for one in repairs if one.done} == {
            wrong.finding.subject for wrong in checked.wrong
        }
        after = await check(lived.app_url)
        assert (after.wrong, after.events, after.rows) == ([], before.events, before.rows)

    async def test_an_item_left_in_a_turn_that_is_over_waits_again(
        self, database: Database
    ) -> None:
        item = await left_behind(database)
        checked = await check(database.app_url)
        assert (2, "left_in_ended_turn", item) in rules(checked)
        repairs = await repair(database.app_url, checked)
        assert [one.done for one in repairs if one.wrong.finding.subject == item] == [True]
        after = rules(await check(database.app_url))
        assert (2, "left_in_ended_turn", item) not in after
        assert after <= rules(checked)
        async with log_at(database.app_url) as log:
            view = await log.view("eve", 5)
            assert [one.id for one in view.queue] == [item]
            flight = await begin(log, "eve")
            assert flight.item.id == item

    async def test_nothing_is_taken_from_a_worker(self, database: Database) -> None:
        """An agent whose lock somebody holds is left alone."""
        item = await left_behind(database)
        with psycopg.connect(database.app_url, autocommit=True) as worker:
            worker.execute("SELECT pg_advisory_lock(hashtextextended('default/eve', 0))")
            repairs = await repair(database.app_url, await check(database.app_url))
        (about,) = [one for one in repairs if one.wrong.finding.subject == item]
        assert not about.done
        assert "a worker is at work" in about.how

    async def test_what_was_recorded_stays_recorded(self, lived: Database) -> None:
        tamper(lived, "ALTER TABLE events DISABLE TRIGGER events_append_only",
               "UPDATE events SET data = jsonb_set(data, '{epoch}', '1')"
               " WHERE type = 'turn.ended' AND stream = 'session:ses_ada'")  # fmt: skip
        checked = await check(lived.app_url)
        repairs = await repair(lived.app_url, checked)
        assert not any(one.done for one in repairs)
        assert len(repairs) == checked.found
        assert rules(await check(lived.app_url)) == rules(checked)


async def left_behind(database: Database) -> str:
    """An agent that is idle and whose item is still in a turn that is over; answers the item."""
    async with log_at(database.app_url) as log:
        await create(log, "eve")
        (item,) = await accept(log, "eve", "hello")
        flight = await begin(log, "eve")
        ended = s.TurnEnded(
            turn_id=flight.turn.id, session_id=flight.session.id, agent_id="eve",
            item_ids=(item,), outcome=Completed("bye"), usage=Usage(), responses=0,
            tool_calls=0, epoch=flight.epoch,
        )  # fmt: skip
        async with log.locked("eve") as tx:
            released = f.FlightReleased(agent_id="eve", epoch=flight.epoch, reason="done")
            await tx.append([tx.addition(released), flight.session_events(ended)], BY)
    return item


async def newest_coordinate(database: Database) -> str:
    """The last event of the stream that the test has just written."""
    async with await psycopg.AsyncConnection.connect(database.app_url) as connection:
        cursor = await connection.execute(
            "SELECT txid || '-' || position FROM events ORDER BY txid DESC, position DESC LIMIT 1"
        )
        (newest,) = await cursor.fetchone() or ("",)
        return str(newest)
