"""`undivided doctor`: whether all that this release needs is there, and set as it must be."""

from __future__ import annotations

import asyncio
import os
import platform
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated

import msgspec
import psycopg
import typer
from msgspec import Struct
from redis.asyncio import Redis
from redis.exceptions import RedisError
from rich.console import Console
from rich.table import Table
from sqlalchemy.exc import DBAPIError

from undivided.cli.client import NO, UNREACHABLE
from undivided.cli.database import Data
from undivided.cli.options import AsJson
from undivided.cli.surroundings import DEFAULT_DATA, surroundings
from undivided.domain.errors import Undivided
from undivided.store.locks import refuse_transaction_pooler
from undivided.store.migrate import schema_revisions
from undivided.store.settings import Settings, load_settings


class Finding(Struct, frozen=True, kw_only=True):
    """One thing that was looked at: is it as it must be, and what was seen."""

    name: str
    ok: bool
    detail: str
    exit_code: int = 0


Check = Callable[[Settings], Awaitable[Finding]]


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command()(doctor)


def doctor(
    config: Annotated[Path | None, typer.Option(help="TOML config file.")] = None,
    data: Data = DEFAULT_DATA,
    as_json: AsJson = False,
) -> None:
    """Check Python, config, database, role, isolation, session locks, schema and Redis."""
    findings = asyncio.run(examine(config, data))
    (_print_json if as_json else _print_table)(findings)
    if code := max(finding.exit_code for finding in findings):
        raise typer.Exit(code)


async def examine(config: Path | None, data: Path = DEFAULT_DATA) -> list[Finding]:
    """Look at everything in order; what stands on something broken is not looked at."""
    findings = [Finding(name="python", ok=True, detail=platform.python_version())]
    try:
        settings = load_settings(surroundings(os.environ, data), config)
    except Undivided as error:
        return [*findings, _bad("config", str(error))]
    models = ", ".join(f"{name}: {p.model}" for name, p in settings.config.models.items())
    findings.append(Finding(name="config", ok=True, detail=models))
    findings.append(await _database(settings))
    if findings[-1].ok:
        findings += [await check(settings) for check in (_role, _reading, _locks, _schema)]
    return [*findings, await _redis(settings)]


async def _database(settings: Settings) -> Finding:
    try:
        async with await _connected(settings) as connection:
            row = await (await connection.execute("SHOW server_version")).fetchone()
    except psycopg.Error as error:
        return _bad("database", f"cannot be reached: {_line(error)}; check DATABASE_URL")
    return Finding(name="database", ok=True, detail=f"PostgreSQL {row[0] if row else '?'}")


async def _role(settings: Settings) -> Finding:
    """The service's role must not be able to change what was recorded."""
    async with await _connected(settings) as connection:
        cursor = await connection.execute(
            "SELECT current_user, r.rolsuper OR EXISTS (SELECT FROM pg_tables t"
            " WHERE t.tablename = 'events' AND t.schemaname = 'public'"
            " AND pg_has_role(current_user, t.tableowner::name, 'USAGE'))"
            " FROM pg_roles r WHERE r.rolname = current_user"
        )
        row = await cursor.fetchone()
    name, owner = row or ("?", True)
    if owner:
        advice = "the log is not safe from it; let DATABASE_URL name a role that owns nothing"
        return Finding(name="role", ok=False, detail=f"{name} owns the log: {advice}", exit_code=NO)
    return Finding(name="role", ok=True, detail=f"{name} owns nothing")


async def _reading(settings: Settings) -> Finding:
    """What waited for another has to see what that one wrote."""
    async with await _connected(settings) as connection:
        row = await (await connection.execute("SHOW default_transaction_isolation")).fetchone()
    level = str(row[0]) if row else "?"
    if level == "read committed":
        return Finding(name="isolation", ok=True, detail=level)
    advice = "set default_transaction_isolation of the database or role to 'read committed'"
    return Finding(name="isolation", ok=False, detail=f"is {level}; {advice}", exit_code=NO)


async def _locks(settings: Settings) -> Finding:
    try:
        await refuse_transaction_pooler(settings.database_direct_url)
    except Undivided as error:
        return _bad("locks", str(error))
    return Finding(name="locks", ok=True, detail="session locks hold")


async def _schema(settings: Settings) -> Finding:
    try:
        found, needed = await asyncio.to_thread(schema_revisions, settings)
    except DBAPIError as error:
        return _bad("schema", f"cannot be read: {_line(error)}")
    if found == needed:
        return Finding(name="schema", ok=True, detail=f"{found}")
    detail = f"is {found or 'empty'}, this release needs {needed}; run `undivided migrate`"
    return Finding(name="schema", ok=False, detail=detail, exit_code=NO)


async def _redis(settings: Settings) -> Finding:
    try:
        async with Redis.from_url(settings.redis_url, socket_connect_timeout=5) as client:
            info = await client.info("server")
    except (RedisError, OSError) as error:
        return _bad("redis", f"cannot be reached: {_line(error)}; check REDIS_URL")
    name = info.get("server_name", "redis")
    return Finding(name="redis", ok=True, detail=f"{name} {info.get(f'{name}_version', '')}")


async def _connected(settings: Settings) -> psycopg.AsyncConnection[tuple[object, ...]]:
    return await psycopg.AsyncConnection.connect(
        settings.database_url, autocommit=True, connect_timeout=5
    )


def _bad(name: str, detail: str) -> Finding:
    return Finding(name=name, ok=False, detail=detail, exit_code=UNREACHABLE)


def _line(error: Exception) -> str:
    return " ".join(str(error).split("\n", 1)[0].split())


def _print_json(findings: list[Finding]) -> None:
    checks = [{"name": f.name, "ok": f.ok, "detail": f.detail} for f in findings]
    answer = {"ok": all(f.ok for f in findings), "checks": checks}
    typer.echo(msgspec.json.encode(answer).decode())


def _print_table(findings: list[Finding]) -> None:
    table = Table(show_header=False, box=None)
    for finding in findings:
        mark = "[green]ok[/green]" if finding.ok else "[red]no[/red]"
        table.add_row(mark, finding.name, finding.detail)
    Console().print(table)
    for finding in findings:
        if not finding.ok:
            typer.echo(f"{finding.name}: {finding.detail}", err=True)
