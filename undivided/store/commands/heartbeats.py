"""A heartbeat or a daily report, asked for by a person, besides those of the clock."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from undivided.domain.beats import Brought, Moment
from undivided.domain.coordinates import Coordinate
from undivided.domain.daily_report import report_asked_for
from undivided.domain.errors import NotFound
from undivided.domain.heartbeat import beat_asked_for
from undivided.domain.mailbox import accept
from undivided.domain.recorded import Meta
from undivided.domain.state.heartbeat import HeartbeatRow
from undivided.domain.state.item import ItemRow
from undivided.store.beating import seen_by
from undivided.store.commands.outlet import Outlet


class AskedFor(Struct, frozen=True):
    """The item that was asked for; without a coordinate it was there before."""

    item: ItemRow
    coordinate: Coordinate | None


async def ask_for_beat(outlet: Outlet, agent_id: str, item_id: str, meta: Meta) -> AskedFor:
    """Let the agent's heart beat now.

    Raises:
        NotFound: there is no such agent.
        Rejected: see `beat_asked_for`.
        Full: the mailbox has no room.
    """
    return await _ask_for(outlet, agent_id, item_id, (beat_asked_for, meta))


async def ask_for_report(outlet: Outlet, agent_id: str, item_id: str, meta: Meta) -> AskedFor:
    """Ask the agent for its report of today, as its own calendar shows it.

    Raises:
        NotFound: there is no such agent.
        Full: the mailbox has no room.
    """
    return await _ask_for(outlet, agent_id, item_id, (report_asked_for, meta))


async def _ask_for(
    outlet: Outlet, agent_id: str, item_id: str, asked: tuple[Callable[[Moment], Brought], Meta]
) -> AskedFor:
    decide, meta = asked
    async with outlet.log.locked(agent_id) as tx:
        there: ItemRow | None = await tx.row("items", item_id)
        if there is not None:
            return AskedFor(there, None)
        row: HeartbeatRow | None = await tx.row("heartbeats", agent_id)
        if row is None or row.lifecycle == "deleted":
            raise NotFound(f"there is no agent {agent_id}")
        seen = await seen_by(tx, row)
        brought = decide(Moment(tx.agent, row, seen, item_id, 1))
        commands = () if brought.command is None else (brought.command,)
        events = (*accept(tx.agent, commands, seen.joinable), *brought.events)
        appended = await tx.append(
            [tx.addition(*events)], meta, known={("heartbeats", row.id): row}
        )
    outlet.wake(tx.agent)
    return AskedFor(appended.rows["items", item_id], appended.coordinate)
