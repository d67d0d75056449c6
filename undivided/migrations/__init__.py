"""Alembic migrations: the schema, one step a release."""
