"""Databases of earlier schemas: after a migration their rows are those that a fold would make."""

from __future__ import annotations

import psycopg
from alembic import command

from tests.support.lives import BY, create, live, log_at
from tests.support.servers import Database
from undivided.domain.agents import ConfigureAgent
from undivided.domain.events.items import Payload, Sender
from undivided.domain.mailbox import Accept
from undivided.domain.stimuli import HEARTBEAT, TASK_COMMENT
from undivided.store.checking import check
from undivided.store.commands import agents
from undivided.store.commands.accepting import accept_stimuli
from undivided.store.commands.outlet import Outlet
from undivided.store.doorbell import Doorbell
from undivided.store.fresh import fresh_id
from undivided.store.hints import Hints
from undivided.store.log import Log
from undivided.store.migrate import alembic_config, engine_for, migrate
from undivided.store.settings import Settings

NOWHERE = ("redis://127.0.0.1:1", "nobody")


def outlet_of(log: Log) -> Outlet:
    """Where nobody is told of anything."""
    return Outlet(log, Doorbell(*NOWHERE), Hints(*NOWHERE))


async def taken_back_and_migrated(settings: Settings, database: Database, revision: str) -> None:
    """The schema as it was at `revision`, and then as it is now."""
    with engine_for(settings.database_owner_url).begin() as connection:
        command.downgrade(alembic_config(connection), revision)
    migrate(settings)
    assert [wrong.finding for wrong in (await check(database.app_url)).wrong] == []


async def test_hearts_of_agents_that_were_there_before(
    database: Database, settings: Settings
) -> None:
    """Whatever their ids, their intervals and the changes of these, started or not."""
    async with log_at(database.app_url) as log:
        for n, interval_s in enumerate((None, 300.0, 450.25, 7200.0, 86_400.0)):
            agent_id = f"agent-{n}.X_{n}"
            await create(log, agent_id)
            changes = (ConfigureAgent(heartbeat_interval_s=interval_s), ConfigureAgent(name="new"))
            for change in changes:
                await agents.configure(outlet_of(log), agent_id, change, BY)
        await agents.stop(outlet_of(log), "agent-0.X_0", BY)
    await taken_back_and_migrated(settings, database, "0002")


async def test_mail_that_waits(database: Database, settings: Settings) -> None:
    """Its keys of merging name delivery and session; what merged and was dropped is counted."""
    async with log_at(database.app_url) as log:
        await live(log, "ada")
        for kind, session in (
            (TASK_COMMENT, None), (TASK_COMMENT, None), (TASK_COMMENT, "ses/1"),
            (HEARTBEAT, None), (HEARTBEAT, None),
        ):  # fmt: skip
            said = Accept(
                item_id=fresh_id("mbx"), source_type=kind, session_id=session,
                payload=Payload("a word", task_id="t/1"), sender=Sender("bob", None, "agent"),
            )  # fmt: skip
            await accept_stimuli(outlet_of(log), "ada", [said], BY)
    await taken_back_and_migrated(settings, database, "0003")
    with psycopg.connect(database.owner_url) as owner:
        assert owner.execute("SELECT merged, dropped, remembers FROM agents").fetchall() == [
            (1, 1, True)
        ]
        keys = owner.execute("SELECT DISTINCT merge_key FROM items WHERE status = 'queued'")
        assert {key for (key,) in keys} == {
            None, "task_comment/queue//t/1", "task_comment/queue/ses/1/t/1",
            "heartbeat/queue//newest",
        }  # fmt: skip
