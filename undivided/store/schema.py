"""The schema that this release needs, and refusing to work on any other.

Read from the names of the migrations, `NNNN_title.py`: a process that only serves need not load
what migrates.
"""

from __future__ import annotations

from importlib import resources

import psycopg

from undivided.domain.errors import Unavailable, Undivided


class SchemaNotCurrent(Undivided):
    """The database has no schema yet, or that of another release."""

    code = "schema_not_current"


def needed_schema() -> str:
    """The newest revision there is."""
    folder = resources.files("undivided") / "migrations" / "versions"
    return max(name[:4] for file in folder.iterdir() if (name := file.name)[:4].isdigit())


async def refuse_other_schema(url: str) -> None:
    """Make sure that the database at `url` is at the schema of this release.

    Raises:
        SchemaNotCurrent: with one sentence on what to do.
        Unavailable: Postgres cannot be reached.
    """
    try:
        async with await psycopg.AsyncConnection.connect(url, connect_timeout=5) as connection:
            cursor = await connection.execute("SELECT max(version_num) FROM alembic_version")
            row = await cursor.fetchone()
    except psycopg.OperationalError as error:
        raise Unavailable("the database cannot be reached") from error
    except (psycopg.errors.UndefinedTable, psycopg.errors.InsufficientPrivilege) as error:
        raise SchemaNotCurrent(
            "the database has no schema that this role may use; run `undivided migrate`"
        ) from error
    found, needed = row[0] if row else None, needed_schema()
    if found != needed:
        raise SchemaNotCurrent(
            f"the database is at schema {found or 'none'}, this release needs {needed}; "
            "run `undivided migrate`, or the release that wrote it"
        )
