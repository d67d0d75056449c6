"""The tool by which one agent writes to another."""

from __future__ import annotations

from typing import Any

from undivided.domain.callbacks import Asking, Unsent, reply, told
from undivided.domain.errors import Full, Invalid, NotFound, Rejected, TooLarge
from undivided.domain.events.items import Sender
from undivided.domain.messaging import awaiting_of, conversation_of, message
from undivided.domain.scenarios import JUDGE
from undivided.domain.tooling import Acts, Raised, Returned, ToolOutcome
from undivided.store.commands.accepting import accept_once
from undivided.store.commands.outlet import Outlet
from undivided.store.commands.replies import await_reply
from undivided.workers.tools.tool import EVERYWHERE, Tool, ToolContext, parameters

_ID = {"type": "string", "minLength": 1, "maxLength": 128}


def messaging(outlet: Outlet) -> tuple[Tool, ...]:
    """The tools that write into other mailboxes."""

    async def send(context: ToolContext, args: dict[str, Any]) -> ToolOutcome:
        target, key = args["agent_id"], context.idempotency_key
        if target == context.agent_id:
            return Raised("you cannot write to yourself; use schedule_wakeup or working memory")
        conversation_id = args.get("conversation_id") or conversation_of(key)
        awaited = awaiting_of(key) if args.get("await_in_session", False) else None
        sender = Sender(context.agent_id, None, "agent")
        said = message(sender, target, args["message"], conversation_id, key)
        try:
            if awaited is not None:
                asking = Asking(context.agent_id, context.turn_id, context.session_id, awaited)
                asked = reply(conversation_id, f"reply of {target}", asking)
                await await_reply(outlet, asked, context.meta)
            await accept_once(outlet, target, said, context.meta)
        except (NotFound, Full, Invalid, Rejected, TooLarge) as refused:
            why = str(refused)
            return Raised(why) if awaited is None else Acts(Unsent(awaited, why))
        return Returned(told(status="dispatched", agent_id=target, conversation_id=conversation_id))

    return (
        Tool(
            name="agent_send_message",
            description=(
                "Write to another agent. You do not wait for an answer; with await_in_session it "
                "reaches you in this conversation. To answer a message, give its conversation_id."
            ),
            parameters=parameters(
                ("agent_id", "message"),
                agent_id=_ID,
                message={"type": "string", "minLength": 1, "maxLength": 100_000},
                conversation_id=_ID | {"pattern": "^[A-Za-z0-9._-]+$"},
                await_in_session={"type": "boolean"},
            ),
            effect="idempotent",
            interrupt="never",
            contexts=EVERYWHERE - {JUDGE},
            run=send,
        ),
    )
