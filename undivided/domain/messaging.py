"""Messages between agents: whom they reach, and which conversation a reply belongs to."""

from __future__ import annotations

import re

from undivided.domain.events.items import Payload, Sender
from undivided.domain.ids import digest
from undivided.domain.mailbox import Accept
from undivided.domain.stimuli import A2A_MESSAGE

CHANNEL_KEY = "channelKey"
CONVERSATION_ID = "conversationId"
_TAG = re.compile(r"\[conversation:([A-Za-z0-9._-]{1,128})\]")


def direct_channel(one: str, other: str) -> str:
    """The channel of two agents, whoever of them speaks."""
    return "dm:a2a:" + ":".join(sorted((one, other)))


def conversation_of(idempotency_key: str) -> str:
    """The name of the conversation that a message opens."""
    return f"conv_{digest((idempotency_key, 'conversation'))}"


def awaiting_of(idempotency_key: str) -> str:
    """The callback that awaits the reply to a message."""
    return f"a2a_{digest((idempotency_key, 'reply'))}"


def message(sender: Sender, to: str, text: str, conversation_id: str, key: str) -> Accept:
    """A message from one agent to another; the same `key` is the same message."""
    return Accept(
        item_id=f"mbx_{digest((key, to))}",
        source_type=A2A_MESSAGE,
        payload=Payload(
            f"[conversation:{conversation_id}] {text}",
            summary=text[:100],
            extra={
                CHANNEL_KEY: direct_channel(sender.id or "", to),
                CONVERSATION_ID: conversation_id,
            },
        ),
        sender=sender,
    )


def conversations(command: Accept) -> tuple[str, ...]:
    """The conversations that a message says it belongs to, in the order in which it does."""
    if command.source_type != A2A_MESSAGE:
        return ()
    tags = _TAG.findall(command.payload.content)
    named = command.payload.extra.get(CONVERSATION_ID)
    return tuple(dict.fromkeys([*([named] if isinstance(named, str) else []), *tags]))
