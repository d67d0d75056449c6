"""Replies that an agent waits to hear in a session of its own: they are answered there."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from undivided.domain import callbacks
from undivided.domain.events.callbacks import CallbackRegistered, CallbackResolved
from undivided.domain.mailbox import Accept
from undivided.domain.messaging import conversations
from undivided.domain.recorded import Meta
from undivided.domain.state.callback import CallbackRow
from undivided.store.codec import row_decoder
from undivided.store.commands.callbacks import refuse_more
from undivided.store.commands.outlet import Outlet
from undivided.store.database import TENANT
from undivided.store.log import AgentTx

_callback_of = row_decoder(CallbackRow)
_AWAITED = """
SELECT to_jsonb(c)::text FROM callbacks c
 WHERE c.tenant = %s AND c.agent_id = %s AND c.status IN ('pending', 'timed_out')
   AND c.type = 'a2a_reply' AND c.correlation_id = ANY(%s)
 ORDER BY c.registered_at, c.id"""


class Replies(Struct, frozen=True):
    """The stimuli, each in the session where it is awaited, and what they resolve."""

    commands: tuple[Accept, ...]
    events: tuple[CallbackResolved, ...]


async def await_reply(outlet: Outlet, awaited: CallbackRegistered, meta: Meta) -> None:
    """Register a reply that an agent is about to ask for; once, however often it tries.

    It comes before the message, whose answer could otherwise come before it and be missed.

    Raises:
        Full: the agent has too many callbacks pending.
    """
    async with outlet.log.locked(awaited.agent_id) as tx:
        if await tx.row("callbacks", awaited.callback_id) is not None:
            return
        await refuse_more(tx)
        await tx.append([tx.addition(awaited)], meta)


async def as_replies(tx: AgentTx, commands: Sequence[Accept]) -> Replies:
    """Bring replies to whoever awaits them; a callback is resolved by the first that answers it."""
    named = {one for command in commands for one in conversations(command)}
    if not named:
        return Replies(tuple(commands), ())
    cursor = await tx.connection.execute(_AWAITED, (TENANT, tx.agent.id, list(named)))
    awaited = [_callback_of(text) for (text,) in await cursor.fetchall()]
    brought: list[Accept] = []
    resolved: list[CallbackResolved] = []
    for command in commands:
        mine = [row for row in awaited if row.correlation_id in conversations(command)]
        awaited = [row for row in awaited if row not in mine]
        resolved += [callbacks.answered(row, command.item_id) for row in mine]
        brought.append(await _into_session(tx, command, mine))
    return Replies(tuple(brought), tuple(resolved))


async def _into_session(tx: AgentTx, command: Accept, mine: list[CallbackRow]) -> Accept:
    """The reply in the session that awaits it, if that still takes anything."""
    if not mine or command.session_id is not None:
        return command
    session = (await tx.session(mine[0].origin_session_id)).row
    if session is None or session.status != "active" or session.agent_id != tx.agent.id:
        return command
    return replace(command, session_id=session.id)
