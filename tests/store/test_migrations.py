"""The schema: migrations and tables agree, both ways run, and the log cannot be changed."""

from __future__ import annotations

import psycopg
import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext

from tests.support.servers import Database
from undivided.store.migrate import (
    NewerSchema,
    alembic_config,
    engine_for,
    migrate,
    schema_revisions,
)
from undivided.store.schema import needed_schema
from undivided.store.settings import Settings
from undivided.store.tables import METADATA, PROJECTED

_EVENT = (
    "INSERT INTO events (txid, id, stream, version, type, schema, data, meta, recorded_at, bytes)"
    " VALUES (%s, gen_random_uuid(), 'agent:a', %s, 'agent.started', 1, '{}', '{}', now(), 2)"
)


class TestSchema:
    """One description of the schema, told twice."""

    def test_migrations_make_exactly_the_tables_that_the_code_describes(
        self, settings: Settings
    ) -> None:
        """No column, index or constraint differs between tables.py and the migrated database."""
        with engine_for(settings.database_owner_url).connect() as connection:
            context = MigrationContext.configure(connection, opts={"compare_type": True})
            assert compare_metadata(context, METADATA) == []

    def test_downgrade_and_upgrade_both_run(self, settings: Settings) -> None:
        """A release can be taken back and put in again."""
        with engine_for(settings.database_owner_url).begin() as connection:
            command.downgrade(alembic_config(connection), "base")
            left = sa.inspect(connection).get_table_names()
        assert left == ["alembic_version"]
        assert migrate(settings) == "0004"

    def test_migrating_twice_changes_nothing(self, settings: Settings) -> None:
        """What is done already is not done again."""
        assert migrate(settings) == migrate(settings)
        assert schema_revisions(settings) == ("0004", "0004")
        assert needed_schema() == "0004"

    def test_a_newer_schema_is_refused(self, settings: Settings) -> None:
        """A database of a later release is left alone, with a sentence that says so."""
        with engine_for(settings.database_owner_url).begin() as connection:
            connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
        with pytest.raises(NewerSchema, match="9999"):
            migrate(settings)

    def test_every_folded_table_is_keyed_by_tenant_first(self) -> None:
        """Two tenants can never share a row."""
        for table in PROJECTED:
            assert [column.name for column in table.primary_key.columns] == ["tenant", "id"]


class TestAppendOnly:
    """Nobody changes the past: neither the service nor its owner."""

    @pytest.mark.parametrize(
        "statement", ["UPDATE events SET version = 9", "DELETE FROM events", "TRUNCATE events"]
    )
    def test_the_service_has_no_right_to(self, database: Database, statement: str) -> None:
        """The application role was granted reading and adding, nothing else."""
        with (
            psycopg.connect(database.app_url, autocommit=True) as service,
            pytest.raises(psycopg.errors.InsufficientPrivilege),
        ):
            service.execute(statement)

    @pytest.mark.parametrize(
        "statement", ["UPDATE events SET version = 9", "DELETE FROM events", "TRUNCATE events"]
    )
    def test_the_owner_is_stopped_by_the_trigger(self, database: Database, statement: str) -> None:
        """Even who owns the table is told that events are append-only."""
        with psycopg.connect(database.owner_url, autocommit=True) as owner:
            owner.execute(_EVENT, (1, 1))
            with pytest.raises(psycopg.Error, match="append-only"):
                owner.execute(statement)

    def test_the_service_does_not_own_its_tables(self, database: Database) -> None:
        """Otherwise it could grant itself what it lacks."""
        with psycopg.connect(database.app_url, autocommit=True) as service:
            (owner, me) = service.execute(
                "SELECT tableowner, current_user FROM pg_tables WHERE tablename = 'events'"
            ).fetchone() or ("", "")
        assert owner != me


class TestRestoredDump:
    """Transaction ids start again in a new cluster; the order of the log does not."""

    def test_the_base_is_raised_above_everything_recorded(
        self, settings: Settings, database: Database
    ) -> None:
        """A dump from a cluster with higher ids is followed, not preceded, by what comes next."""
        with psycopg.connect(database.owner_url, autocommit=True) as owner:
            owner.execute(_EVENT, (10**12, 1))
            migrate(settings)
            (base,) = owner.execute("SELECT txid_base FROM log_base").fetchone() or (0,)
            (xid,) = owner.execute("SELECT pg_current_xact_id()::text::bigint").fetchone() or (0,)
        assert xid + base > 10**12

    def test_a_base_that_is_high_enough_stays(self, settings: Settings, database: Database) -> None:
        """Starting again moves nothing."""
        with psycopg.connect(database.owner_url, autocommit=True) as owner:
            owner.execute(_EVENT, (1, 1))
            migrate(settings)
            assert owner.execute("SELECT txid_base FROM log_base").fetchone() == (0,)
