"""Acts that reach people: telling them something, and asking them."""

from __future__ import annotations

from undivided.domain.approvals import AskPerson, Named, requested, wait_for
from undivided.domain.attention import chat_session
from undivided.domain.events.sessions import SessionOpened
from undivided.domain.notifications import From, Tell, addressee, message_of, notification_of
from undivided.domain.recorded import session_stream, user_stream
from undivided.store.acts.doing import Doing, Done
from undivided.store.flights import Flight
from undivided.store.fresh import fresh_id
from undivided.store.log import Addition, AgentTx


def _to_whom(flight: Flight, act: Tell | AskPerson) -> tuple[str, ...]:
    return (user_stream(addressee(flight.agent, act.target)),)


async def _tell(tx: AgentTx, flight: Flight, act: Tell) -> Done:
    """A notification, and a message in the agent's chat.

    Where the chat takes no messages any more, the message stands in the turn's own session.
    """
    (stream,) = _to_whom(flight, act)
    chat_id = chat_session(tx.agent.id)
    chat = await tx.session(chat_id)
    open_to_us = chat.row is None or (
        chat.row.status == "active" and chat.row.agent_id == tx.agent.id
    )
    session_id = chat_id if open_to_us else flight.session.id
    speaker = From(flight.agent, flight.turn.id, session_id)
    told = notification_of(act, speaker, fresh_id("ntf"))
    message = message_of(act, speaker)
    posted = Addition(stream, await tx.locked_version(stream), (told,))
    content = f"{told.user_id} was notified"
    if session_id == flight.session.id:
        return Done(content=content, steps=(message,), elsewhere=(posted,))
    opened = SessionOpened(session_id=session_id, agent_id=tx.agent.id)
    said = (message,) if chat.row is not None else (opened, message)
    in_chat = Addition(session_stream(session_id), chat.version, said)
    return Done(content=content, elsewhere=(posted, in_chat))


async def _ask(tx: AgentTx, flight: Flight, act: AskPerson) -> Done:
    """The request on the person's stream, and the turn that waits for its answer."""
    (stream,) = _to_whom(flight, act)
    named = Named(fresh_id("apr"), fresh_id("ntf"), flight.state.open[0].call.id)
    speaker = From(flight.agent, flight.turn.id, flight.session.id)
    asked = requested(act, speaker, flight.item, named)
    wait = wait_for(act, named.approval_id, tx.agent.policy.approval_wait_timeout_s)
    posted = Addition(stream, await tx.locked_version(stream), asked)
    return Done(elsewhere=(posted,), wait=wait)


TELLING = Doing(_tell, _to_whom)
ASKING = Doing(_ask, _to_whom)
