"""Bring a database to this release: schema, SQL functions, grants, and the txid base.

Runs as the owner of the tables, who is not the role that the service uses: what the service
may not do to the log, it cannot do. One runner at a time, by an advisory lock held in the
migration's own transaction, so that it is safe behind any pooler.
"""

from __future__ import annotations

from importlib import resources

import sqlalchemy as sa
from alembic import command
from alembic.config import Config as AlembicConfig
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from psycopg.conninfo import conninfo_to_dict

from undivided.domain.errors import Undivided
from undivided.store.functions import function_statements
from undivided.store.settings import Settings
from undivided.store.tables import METADATA

_LOCK = 7_305_813_044
_READ_ONLY = ("events",)


class NewerSchema(Undivided):
    """The database was written by a newer release than this one."""

    code = "newer_schema"


def engine_for(url: str) -> sa.Engine:
    """A SQLAlchemy engine on psycopg 3 for `url`, without a pool: for schema work only."""
    rest = url.split("://", 1)[1]
    return sa.create_engine(f"postgresql+psycopg://{rest}", poolclass=sa.NullPool)


def alembic_config(connection: sa.Connection) -> AlembicConfig:
    """Alembic's configuration for one open connection."""
    config = AlembicConfig()
    config.set_main_option("script_location", str(resources.files("undivided") / "migrations"))
    config.attributes["connection"] = connection
    return config


def migrate(settings: Settings) -> str:
    """Upgrade to the newest schema; answers its revision. Does nothing that is done already.

    Raises:
        NewerSchema: the database knows a revision that this release does not.
    """
    engine = engine_for(settings.database_owner_url)
    with engine.begin() as connection:
        connection.execute(sa.text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
        config = alembic_config(connection)
        _refuse_newer(connection, config)
        command.upgrade(config, "head")
        for statement in function_statements():
            connection.exec_driver_sql(statement)
        _grant(connection, _role_of(settings.database_url))
        _raise_base(connection)
        _foretell_tenants(connection)
        return MigrationContext.configure(connection).get_current_revision() or ""


def schema_revisions(settings: Settings) -> tuple[str | None, str]:
    """The revision the database is at (None: empty) and the one this release needs."""
    with engine_for(settings.database_url).connect() as connection:
        head = ScriptDirectory.from_config(alembic_config(connection)).get_current_head() or ""
        return MigrationContext.configure(connection).get_current_revision(), head


def _refuse_newer(connection: sa.Connection, config: AlembicConfig) -> None:
    current = MigrationContext.configure(connection).get_current_revision()
    known = {step.revision for step in ScriptDirectory.from_config(config).walk_revisions()}
    if current is not None and current not in known:
        raise NewerSchema(
            f"the database is at schema {current}, which this release does not know; "
            "run the release that wrote it, or a newer one"
        )


def _role_of(url: str) -> str:
    return str(conninfo_to_dict(url).get("user") or "undivided_app")


def _grant(connection: sa.Connection, role: str) -> None:
    """Let `role` add to the log but not change it, and work with everything else."""
    preparer = connection.dialect.identifier_preparer
    name = preparer.quote(role)
    found = connection.execute(sa.text("SELECT 1 FROM pg_roles WHERE rolname = :r"), {"r": role})
    if found.scalar() is None:
        connection.exec_driver_sql(f"CREATE ROLE {name} LOGIN")
    connection.exec_driver_sql(f"GRANT USAGE ON SCHEMA public TO {name}")
    connection.exec_driver_sql(f"GRANT SELECT ON alembic_version TO {name}")
    for table in METADATA.tables:
        rights = "SELECT, INSERT" if table in _READ_ONLY else "SELECT, INSERT, UPDATE, DELETE"
        connection.exec_driver_sql(f"GRANT {rights} ON {preparer.quote(table)} TO {name}")


def _raise_base(connection: sa.Connection) -> None:
    """Keep the stored txid ahead of everything recorded, also in a restored dump.

    Transaction ids start again in a new cluster, so that without this the first append after
    a restore would sort before all that the dump brought.
    """
    connection.exec_driver_sql("LOCK TABLE log_base IN EXCLUSIVE MODE")
    connection.exec_driver_sql(
        "UPDATE log_base SET txid_base = greatest(txid_base, newest.txid + 1"
        " - pg_current_xact_id()::text::bigint)"
        " FROM (SELECT coalesce(max(txid), 0) AS txid FROM events) newest"
        " WHERE newest.txid >= pg_current_xact_id()::text::bigint + txid_base"
    )


_FORETELL = """
SELECT pg_restore_attribute_stats(
         'schemaname', n.nspname::text, 'relname', c.relname::text, 'attname', 'tenant'::text,
         'inherited', false, 'null_frac', 0.0::real, 'avg_width', 8, 'n_distinct', 1.0::real)
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant'
 WHERE n.nspname = 'public' AND c.relkind = 'r'
   AND NOT EXISTS (SELECT FROM pg_statistic s WHERE s.starelid = c.oid AND s.staattnum = a.attnum)
"""


def _foretell_tenants(connection: sa.Connection) -> None:
    """Tell the planner that tenants are few, before it has looked for itself.

    Without that it takes an index that merely begins with the tenant to be as good as the key,
    while a table is small, and a worker keeps that plan while the table grows. From Postgres 18.
    """
    found = connection.exec_driver_sql("SELECT to_regproc('pg_restore_attribute_stats')")
    if found.scalar() is not None:
        connection.exec_driver_sql(_FORETELL)
