"""The tables of a rebuild: made like the live ones, and put in their place.

A shadow table lives in a schema of its own under the same name, with every constraint, index,
setting and grant under the same name too. So putting it in place is moving two tables between
schemas, and afterwards the database looks exactly as the migrations made it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from psycopg import sql

from undivided.domain.errors import Rejected
from undivided.store.database import Connection

SHADOW = "undivided_shadow"
REPLACED = "undivided_replaced"

_CONSTRAINTS = """
SELECT conname, pg_get_constraintdef(oid), contype::text FROM pg_constraint
 WHERE conrelid = %s::regclass AND contype IN ('p', 'u')"""
_INDEXES = """
SELECT c.relname, pg_get_indexdef(i.indexrelid) FROM pg_index i
  JOIN pg_class c ON c.oid = i.indexrelid
 WHERE i.indrelid = %s::regclass
   AND NOT EXISTS (SELECT 1 FROM pg_constraint k WHERE k.conindid = i.indexrelid)"""
_GRANTS = """
SELECT coalesce(r.rolname, 'PUBLIC'), g.privilege_type
  FROM pg_class c, aclexplode(c.relacl) g LEFT JOIN pg_roles r ON r.oid = g.grantee
 WHERE c.oid = %s::regclass"""
_ABOUT = """
SELECT pg_get_userbyid(c.relowner), coalesce(array_to_string(c.reloptions, ', '), ''),
       c.relrowsecurity OR c.relhastriggers OR c.relhasrules OR c.relhassubclass
  FROM pg_class c WHERE c.oid = %s::regclass"""


async def create(connection: Connection, names: Sequence[str]) -> None:
    """Make an empty shadow of each table, with what a fold needs and no more.

    Raises:
        Rejected: a live table has something that a shadow would not have.
    """
    for schema in (SHADOW, REPLACED):
        await _run(connection, "DROP SCHEMA IF EXISTS {} CASCADE", sql.Identifier(schema))
        await _run(connection, "CREATE SCHEMA {}", sql.Identifier(schema))
    for name in names:
        live, shadow = sql.Identifier("public", name), sql.Identifier(SHADOW, name)
        owner, options, more = await _about(connection, name)
        if more:
            raise Rejected(
                "rebuild_unsupported",
                f"table {name} has triggers, rules, row security or children, "
                "which a rebuild does not carry over",
            )
        await _run(
            connection, "CREATE TABLE {} (LIKE {} INCLUDING ALL EXCLUDING INDEXES)", shadow, live
        )
        if options:
            await _run(connection, "ALTER TABLE {} SET ({})", shadow, sql.SQL(options))
        await _run(connection, "ALTER TABLE {} OWNER TO {}", shadow, sql.Identifier(owner))
        await _constraints(connection, name, ("p",))


async def complete(connection: Connection, names: Sequence[str]) -> None:
    """Give the shadows, now that they are full, the rest of what the live tables have."""
    for name in names:
        shadow = sql.Identifier(SHADOW, name)
        await _constraints(connection, name, ("u",))
        for index, definition in await _rows(connection, _INDEXES, name):
            head, _, rest = definition.partition(" ON public.")
            body = rest.partition(" ")[2]
            statement = sql.SQL("{} ON {} {}").format(sql.SQL(head), shadow, sql.SQL(body))
            if not rest:
                raise Rejected("rebuild_unsupported", f"index {index} is defined as {definition}")
            await connection.execute(statement)
        for grantee, privilege in await _rows(connection, _GRANTS, name):
            role = sql.SQL("PUBLIC") if grantee == "PUBLIC" else sql.Identifier(grantee)
            await _run(connection, "GRANT {} ON {} TO {}", sql.SQL(privilege), shadow, role)
        await _run(connection, "ANALYZE {}", shadow)


async def put_in_place(connection: Connection, names: Sequence[str]) -> None:
    """Move the live tables away and the shadows in; needs the caller's transaction and locks."""
    for name in names:
        live, shadow = sql.Identifier("public", name), sql.Identifier(SHADOW, name)
        await _run(connection, "ALTER TABLE {} SET SCHEMA {}", live, sql.Identifier(REPLACED))
        await _run(connection, "ALTER TABLE {} SET SCHEMA public", shadow)


async def clear(connection: Connection) -> None:
    """Remove what is left over: the replaced tables, or the shadows of a rebuild that failed."""
    for schema in (SHADOW, REPLACED):
        await _run(connection, "DROP SCHEMA IF EXISTS {} CASCADE", sql.Identifier(schema))


async def _about(connection: Connection, name: str) -> tuple[str, str, bool]:
    ((owner, options, more),) = await _rows(connection, _ABOUT, name)
    return owner, options, more


async def _constraints(connection: Connection, name: str, kinds: tuple[str, ...]) -> None:
    for constraint, definition, kind in await _rows(connection, _CONSTRAINTS, name):
        if kind in kinds:
            await _run(
                connection,
                "ALTER TABLE {} ADD CONSTRAINT {} {}",
                sql.Identifier(SHADOW, name),
                sql.Identifier(constraint),
                sql.SQL(definition),
            )


async def _rows(connection: Connection, query: str, name: str) -> list[tuple[Any, ...]]:
    cursor = await connection.execute(sql.SQL(query), (f"public.{name}",))
    return await cursor.fetchall()


async def _run(connection: Connection, statement: str, *parts: sql.Composable) -> None:
    await connection.execute(sql.SQL(statement).format(*parts))
