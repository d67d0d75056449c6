"""How Alembic reaches the database: over the connection that `store/migrate` opened."""

from __future__ import annotations

from alembic import context

from undivided.store.tables import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
