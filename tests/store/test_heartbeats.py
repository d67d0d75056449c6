"""Hearts of agents that were there before hearts were."""

from __future__ import annotations

from alembic import command

from tests.support.lives import BY, create, log_at
from tests.support.servers import Database
from undivided.domain.agents import ConfigureAgent
from undivided.store.checking import check
from undivided.store.commands import agents
from undivided.store.commands.outlet import Outlet
from undivided.store.doorbell import Doorbell
from undivided.store.hints import Hints
from undivided.store.migrate import alembic_config, engine_for, migrate
from undivided.store.settings import Settings


async def test_a_migration_gives_old_agents_the_rows_that_a_fold_would(
    database: Database, settings: Settings
) -> None:
    """Whatever their ids, their intervals and the changes of these, started or not."""
    async with log_at(database.app_url) as log:
        nowhere = ("redis://127.0.0.1:1", "nobody")
        outlet = Outlet(log, Doorbell(*nowhere), Hints(*nowhere))
        for n, interval_s in enumerate((None, 300.0, 450.25, 7200.0, 86_400.0)):
            agent_id = f"agent-{n}.X_{n}"
            await create(log, agent_id)
            changes = (ConfigureAgent(heartbeat_interval_s=interval_s), ConfigureAgent(name="new"))
            for change in changes:
                await agents.configure(outlet, agent_id, change, BY)
        await agents.stop(outlet, "agent-0.X_0", BY)
    with engine_for(settings.database_owner_url).begin() as connection:
        command.downgrade(alembic_config(connection), "0002")
    migrate(settings)
    assert [wrong.finding for wrong in (await check(database.app_url)).wrong] == []
