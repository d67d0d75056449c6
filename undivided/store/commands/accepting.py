"""Accepting stimuli: the one way from outside into a mailbox. Needs Postgres only."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

from msgspec import Struct

from undivided.domain.attention import session_for
from undivided.domain.coordinates import Coordinate
from undivided.domain.errors import Conflict, Full, Invalid, NotFound, Rejected
from undivided.domain.events.catalogue import Event
from undivided.domain.events.items import ItemMerged, StimulusAccepted
from undivided.domain.mailbox import NOBODY, Accept, accept
from undivided.domain.merging import merge_key
from undivided.domain.messaging import conversations
from undivided.domain.recorded import Meta
from undivided.domain.state.agent import AgentRow, Suspended
from undivided.domain.state.item import ItemRow
from undivided.domain.state.session import SessionRow
from undivided.domain.triage import calls_away
from undivided.store.commands.outlet import Outlet
from undivided.store.commands.replies import as_replies
from undivided.store.database import TENANT, Connection
from undivided.store.idempotency import Effect
from undivided.store.log import AgentTx, Appended

Earlier = Callable[[Connection], Awaitable[Effect | None]]
"""Asked under the agent's lock, in its transaction: what this request wrote before, if it did."""


class Accepted(Struct, frozen=True):
    """The items that are in the mailbox now, in order, and where the log stood then."""

    items: tuple[ItemRow, ...]
    sessions: tuple[str, ...]
    """The session that each item's turn will belong to."""
    coordinate: Coordinate


async def accept_stimuli(
    outlet: Outlet,
    agent_id: str,
    commands: Sequence[Accept],
    meta: Meta,
    earlier: Earlier | None = None,
) -> Accepted:
    """Accept all of `commands` in one transaction, or none.

    Raises:
        NotFound, Invalid, TooLarge, Full: see `undivided.domain.mailbox.accept`.
        Rejected: a session that takes no stimuli, or another agent's.
    """
    log, sessions = outlet.log, {c.session_id for c in commands if c.session_id is not None}
    with log.memory.recall(agent_id) as view:
        keys = _keys(commands)
        tagged = any(conversations(command) for command in commands)
        if view is not None and earlier is None and not (sessions or keys or tagged):
            async with log.recalled(view) as tx:
                appended = await _append_if_so(tx, commands, meta)
            if appended is not None:
                return _accepted(outlet, tx, appended)
        async with log.locked(agent_id) as tx:
            effect = await earlier(tx.connection) if earlier is not None else None
            if effect is not None:
                return await _accepted_before(tx, effect)
            for session_id in sessions:
                _check_session((await tx.session(session_id)).row, tx.agent)
            replies = await as_replies(tx, commands)
            keys = _keys(replies.commands)
            waiting = await tx.can_be_joined(keys) if keys else {}
            appended = await _append(tx, replies.commands, meta, waiting, replies.events)
        return _accepted(outlet, tx, appended)


async def _append_if_so(tx: AgentTx, commands: Sequence[Accept], meta: Meta) -> Appended | None:
    """Append if the agent is as remembered and no rule refuses; nothing was written otherwise."""
    try:
        return await _append(tx, commands, meta)
    except (Conflict, NotFound, Invalid, Full):
        return None  # it may be so no longer: it is decided again, under the lock


async def _append(
    tx: AgentTx,
    commands: Sequence[Accept],
    meta: Meta,
    waiting: Mapping[str, ItemRow] = NOBODY,
    besides: Sequence[Event] = (),
) -> Appended:
    events = accept(tx.agent, tuple(commands), waiting)
    known = {("items", item.id): item for item in waiting.values()}
    return await tx.append([tx.addition(*events, *besides)], meta, known=known)


async def accept_once(outlet: Outlet, agent_id: str, command: Accept, meta: Meta) -> None:
    """Accept a stimulus whose id is the same however often its sender tries.

    Raises:
        NotFound, Invalid, TooLarge, Full, Rejected: see `accept_stimuli`.
    """

    async def earlier(connection: Connection) -> Effect | None:
        cursor = await connection.execute(
            "SELECT e.txid, e.position FROM items i JOIN events e ON e.id = i.accepted_by::uuid"
            " WHERE i.tenant = %s AND i.id = %s",
            (TENANT, command.item_id),
        )
        row = await cursor.fetchone()
        return Effect((command.item_id,), Coordinate(*row)) if row else None

    await accept_stimuli(outlet, agent_id, [command], meta, earlier)


def _keys(commands: Sequence[Accept]) -> dict[str, int]:
    """What the stimuli could join others by, with the characters of the shortest of each key."""
    keys: dict[str, int] = {}
    for command in commands:
        key, characters = merge_key(command), len(command.payload.content)
        if key is not None:
            keys[key] = min(characters, keys.get(key, characters))
    return keys


def _accepted(outlet: Outlet, tx: AgentTx, appended: Appended) -> Accepted:
    """Remember the agent, and ring; what is not rung for because we die here the sweep finds."""
    outlet.log.memory.keep(tx.agent.id, tx.view_after(appended))
    accepted = [one.event for one in appended.events if isinstance(one.event, StimulusAccepted)]
    _ring(outlet, tx.agent, accepted, appended)
    items = tuple(appended.rows["items", event.item_id] for event in accepted)
    sessions = tuple(session_for(tx.agent, item) for item in items)
    return Accepted(items, sessions, appended.coordinate)


def _ring(
    outlet: Outlet, agent: AgentRow, accepted: Sequence[StimulusAccepted], appended: Appended
) -> None:
    """Ring for what waits now, when it may be picked.

    What joined another item is not rung for: that item is. But a turn that waits may have let it
    pass before, and weighs it again now. A deliberation that a person calls the agent away from
    need not finish its model request.
    """
    joined = {e.event.item_id for e in appended.events if isinstance(e.event, ItemMerged)}
    moments = {event.held_s for event in accepted if event.item_id not in joined}
    if joined and isinstance(agent.attention, Suspended):
        moments.add(0.0)
    for moment in moments:
        outlet.wake(agent, moment)
    if not moments:
        outlet.announce(agent.id)
    if calls_away(agent, accepted):
        outlet.interrupt(agent)


async def _accepted_before(tx: AgentTx, effect: Effect) -> Accepted:
    rows = [await tx.row("items", item_id) for item_id in effect.items]
    items = tuple(row for row in rows if row is not None)
    sessions = tuple(session_for(tx.agent, item) for item in items)
    return Accepted(items, sessions, effect.coordinate)


def _check_session(session: SessionRow | None, agent: AgentRow) -> None:
    """A session that does not exist yet is opened by its first turn."""
    if session is None:
        return
    if session.agent_id != agent.id:
        raise Rejected(
            "session_of_another_agent",
            f"session {session.id} belongs to agent {session.agent_id}, not to {agent.id}",
        )
    if session.status != "active":
        raise Rejected(
            f"session_{session.status}",
            f"session {session.id} is {session.status} and takes no more stimuli; use another",
        )
