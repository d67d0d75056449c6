"""What `undivided check --repair` does about a finding, and what nobody can.

Rows are only what the log says, so that any of them can be made anew:

- A row that differs, is missing or has no history is folded again from its one stream, under
  that stream's row lock, and written over or removed.
- A stream's version row is set to the version of its last event.

Where history itself stopped short, more history mends it, as events that name the rule:

- An item that was left in a turn that is over waits again: `item.requeued` with the rule
  `check_repair`, in a flight of its own, so that whoever held the agent before is fenced.
- A focused agent that nobody holds is no finding: the sweep finds it within a second.

What was recorded stays recorded. A step with a stale epoch, a second result, a `once` tool that
was started twice or a gap in a stream cannot be mended; they stay findings, and say what has to
be explained.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import psycopg
from msgspec import Raw, Struct
from psycopg import sql

from undivided.domain.decisions import Decision
from undivided.domain.errors import NotFound
from undivided.domain.events import flights as f
from undivided.domain.events.items import ItemRequeued
from undivided.domain.recorded import Meta
from undivided.domain.state.agent import Idle
from undivided.domain.state.item import ItemRow, Processing
from undivided.domain.state.session import TurnOver, TurnRow
from undivided.projections.table import Rows, fold
from undivided.store.checking import Checked, Wrong
from undivided.store.codec import encode, escape_text
from undivided.store.database import TENANT, Connection, Database
from undivided.store.fresh import fresh_id
from undivided.store.log import AgentTx, Log
from undivided.store.log_pages import pieces_of_stream
from undivided.store.shadow import NEW_EDITION, upsert
from undivided.store.tables import METADATA

RULE = "check_repair"
_ROW_RULES = {"row_differs", "row_missing", "row_without_history", "row_unreadable"}


class Repair(Struct, frozen=True):
    """What was done about one finding, or why nothing was."""

    wrong: Wrong
    done: bool
    how: str


async def repair(url: str, checked: Checked) -> list[Repair]:
    """Mend what can be mended; the answer has one entry for each finding."""
    database = Database(url, size=2, name="undivided check")
    await database.open()
    try:
        async with database.connection() as connection:
            repairs = [await _version(connection, w) for w in _of(checked, _is_version)]
            repairs += await _rows(connection, _of(checked, _is_row))
        log = Log(database)
        repairs += [await _item(log, wrong) for wrong in _of(checked, _is_left)]
    finally:
        await database.close()
    touched = {id(one.wrong) for one in repairs}
    rest = (wrong for wrong in checked.wrong if id(wrong) not in touched)
    return repairs + [Repair(wrong, done=False, how=_RECORDED) for wrong in rest]


_RECORDED = "what was recorded stays recorded: this has to be explained, not mended"


def _is_version(wrong: Wrong) -> bool:
    return wrong.finding.rule == "stream_version_differs"


def _is_row(wrong: Wrong) -> bool:
    return wrong.finding.rule in _ROW_RULES and wrong.finding.stream != ""


def _is_left(wrong: Wrong) -> bool:
    return wrong.finding.rule == "left_in_ended_turn"


def _of(checked: Checked, wanted: Callable[[Wrong], bool]) -> list[Wrong]:
    return [wrong for wrong in checked.wrong if wanted(wrong)]


async def _version(connection: Connection, wrong: Wrong) -> Repair:
    key = (wrong.tenant, wrong.finding.stream)
    async with connection.transaction():
        await connection.execute(
            "INSERT INTO streams (tenant, stream, version) VALUES (%s, %s, 0)"
            " ON CONFLICT DO NOTHING",
            key,
        )
        await connection.execute(
            "SELECT 1 FROM streams WHERE tenant = %s AND stream = %s FOR UPDATE", key
        )
        cursor = await connection.execute(
            "UPDATE streams s SET version = (SELECT coalesce(max(e.version), 0) FROM events e"
            " WHERE e.tenant = s.tenant AND e.stream = s.stream)"
            " WHERE s.tenant = %s AND s.stream = %s RETURNING version",
            key,
        )
        (version,) = await cursor.fetchone() or (0,)
    return Repair(wrong, done=True, how=f"set to {version}, its last event")


async def _rows(connection: Connection, wrongs: list[Wrong]) -> list[Repair]:
    by_stream: dict[tuple[str, str], list[Wrong]] = {}
    for wrong in wrongs:
        by_stream.setdefault((wrong.tenant, wrong.finding.stream), []).append(wrong)
    repairs: list[Repair] = []
    for (tenant, stream), some in by_stream.items():
        try:
            await _refold(connection, tenant, stream, {_place(wrong) for wrong in some})
            repairs += [
                Repair(wrong, done=True, how=f"folded again from {stream}") for wrong in some
            ]
        except psycopg.IntegrityError as error:
            told = error.diag.message_primary or str(error)
            repairs += [Repair(wrong, done=False, how=f"another row is in its way: {told}")
                        for wrong in some]  # fmt: skip
    return repairs


def _place(wrong: Wrong) -> tuple[str, str]:
    table, _, row_id = wrong.finding.subject.partition("/")
    return table, row_id


async def _refold(
    connection: Connection, tenant: str, stream: str, places: set[tuple[str, str]]
) -> None:
    """Fold rows from their stream: most of it without the lock, the rest and the write under it."""
    rows: Rows = {}
    version = await _fold_on(connection, tenant, stream, 0, (rows, places))
    async with connection.transaction():
        await connection.execute(
            "SELECT 1 FROM streams WHERE tenant = %s AND stream = %s FOR UPDATE", (tenant, stream)
        )
        await _fold_on(connection, tenant, stream, version, (rows, places))
        for table, row_id in places:
            await _write(connection, tenant, (table, row_id), rows.get((table, row_id)))
        await connection.execute(NEW_EDITION)


async def _fold_on(
    connection: Connection,
    tenant: str,
    stream: str,
    version: int,
    into: tuple[Rows, set[tuple[str, str]]],
) -> int:
    rows, places = into
    async for piece in pieces_of_stream(connection, tenant, stream, version):
        for kept in piece:
            fold(rows, [kept.placed.recorded])
            for place in [place for place in rows if place not in places]:
                del rows[place]
        version = piece[-1].placed.recorded.version
    return version


async def _write(
    connection: Connection, tenant: str, place: tuple[str, str], row: object | None
) -> None:
    table, row_id = place
    name = sql.Identifier("public", table)
    await connection.execute(
        sql.SQL("DELETE FROM {} WHERE tenant = %s AND id = %s").format(name),
        (tenant, escape_text(row_id)),
    )
    if row is not None:
        encoded = msgspec.json.encode([Raw(encode(row))]).decode()
        await connection.execute(upsert(METADATA.tables[table], name), (tenant, encoded))


async def _item(log: Log, wrong: Wrong) -> Repair:
    agent_id = wrong.finding.stream.removeprefix("agent:")
    if wrong.tenant != TENANT:
        return Repair(wrong, done=False, how=f"belongs to tenant {wrong.tenant}")
    try:
        async with log.locked(agent_id, queue=1) as tx:
            problem = await _requeue(tx, wrong.finding.subject)
    except NotFound as error:
        problem = str(error)
    if problem:
        return Repair(wrong, done=False, how=problem)
    return Repair(wrong, done=True, how=f"waits again, by item.requeued with rule {RULE}")


async def _requeue(tx: AgentTx, item_id: str) -> str | None:
    """Put the item back; the answer says why not, if not."""
    cursor = await tx.connection.execute(
        "SELECT pg_try_advisory_xact_lock(hashtextextended(%s || '/' || %s, 0))",
        (TENANT, tx.agent.id),
    )
    if await cursor.fetchone() != (True,):
        return f"a worker is at work on agent {tx.agent.id}; check again once it is not"
    item: ItemRow | None = await tx.row("items", item_id)
    if item is None or not isinstance(item.phase, Processing):
        return "its row does not say that it is in a turn; check again"
    turn: TurnRow | None = await tx.row("turns", item.phase.turn_id)
    if turn is not None and not isinstance(turn.phase, TurnOver):
        return f"turn {turn.id} is open again; check again"
    focus = tx.agent.attention
    if not isinstance(focus, Idle) and focus.turn_id != item.phase.turn_id:
        return f"agent {tx.agent.id} is in turn {focus.turn_id}; check again once it is idle"
    await tx.append([tx.addition(*_flight(tx, item, item.phase.turn_id))], Meta(actor="check"))
    return None


def _flight(
    tx: AgentTx, item: ItemRow, turn_id: str
) -> tuple[f.FlightAcquired, ItemRequeued, f.FlightReleased]:
    agent, before = tx.agent, tx.view.flight
    epoch = before.epoch + 1 if before else 1
    taken_from = before.epoch if before and before.held else None
    decision = Decision(
        fresh_id("dec"), "requeue", RULE, "its turn is over and left it behind",
        {"turn": turn_id, "attempt": item.tries.picked}, agent.policy_version,
    )  # fmt: skip
    return (
        f.FlightAcquired(agent_id=agent.id, epoch=epoch, worker="check", taken_from=taken_from),
        ItemRequeued(
            agent_id=agent.id, item_id=item.id, turn_id=turn_id, epoch=epoch,
            reason="left_behind", wait_s=0, decision=decision,
        ),
        f.FlightReleased(agent_id=agent.id, epoch=epoch, reason="done"),
    )  # fmt: skip
