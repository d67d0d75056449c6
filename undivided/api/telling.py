"""Telling a waiting client how its message fares: the frames of a conversation.

| event | id | data |
|---|---|---|
| `session_start` | yes | `{itemId, sessionId, agentId}`: it is accepted |
| `text_delta` | no | `{text, step}`: a piece, while the response is written |
| `text_delta` | yes | `{text, step, restart}`: what pieces did not bring, once it is recorded; with `restart` the pieces of this step so far are void |
| `tool_start` | yes | `{callId, tool, args}` |
| `tool_end` | yes | `{callId, tool, content, resolution}` |
| `done` | yes | `{reply, itemId, sessionId, outcome, turnId}` |
| `done` | yes | `{merged, mergedInto, …}`: it went into another item's turn, which answers it |
| `error` | yes | the same, where the outcome is another than completed |

Whoever attaches again with the last id it saw forgets the pieces that came after it.
"""  # noqa: E501 a table

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from msgspec import Struct

from undivided.api.parts import Parts
from undivided.api.shapes.accepted import MessageAnswer
from undivided.api.shapes.items import times_of
from undivided.api.sse import HEARTBEAT, frame
from undivided.domain.outcomes import Completed, Incomplete
from undivided.domain.state.item import TERMINAL, Done, ItemRow
from undivided.store.conversing import Followed, Piece, Quiet, Step, follow_item
from undivided.store.queries import items
from undivided.store.queries.reading import Reading

QUIET_BEATS = 10
"""Seconds of silence between two comments."""


class Written(Struct):
    """What the client was sent of the response that is being written."""

    turn_id: str = ""
    step: int = -1
    text: str = ""

    def add(self, piece: Piece) -> bool:
        """Take a piece; false if its response is recorded already."""
        if piece.turn_id == self.turn_id and piece.step < self.step:
            return False
        if (piece.turn_id, piece.step) != (self.turn_id, self.step):
            self.turn_id, self.step, self.text = piece.turn_id, piece.step, ""
        self.text += piece.text
        return True

    def rest(self, turn_id: str, step: int, text: str) -> dict[str, Any] | None:
        """What is missing of a recorded response, if anything is; the next step begins."""
        same = (turn_id, step) == (self.turn_id, self.step)
        sent = self.text if same else ""
        self.turn_id, self.step, self.text = turn_id, step + 1, ""
        if text == sent:
            return None
        if text.startswith(sent):
            return {"text": text[len(sent) :], "step": step}
        return {"text": text, "step": step, "restart": True}


async def told(
    parts: Parts, item: Followed, accepted: MessageAnswer | None = None
) -> AsyncIterator[bytes]:
    """The frames about one item, until it is over."""
    if accepted is not None:
        began = {
            "itemId": item.item_id, "sessionId": item.session_id, "agentId": item.agent_id,
        }  # fmt: skip
        yield frame("session_start", began, accepted.position)
    written, silence = Written(), 0
    async for happened in follow_item(parts.database, parts.hints, item, parts.leaving):
        match happened:
            case Quiet():
                silence += 1
                if silence % QUIET_BEATS == 0:
                    yield HEARTBEAT
            case Piece() as piece:
                if written.add(piece):
                    yield frame("text_delta", {"text": piece.text, "step": piece.step})
            case Step() as step:
                shown = _shown(step, written)
                if shown is not None:
                    yield shown
                last = await _last(parts, item, step) if _may_end(item, step) else None
                if last is not None:
                    yield last
                    return


def _shown(step: Step, written: Written) -> bytes | None:
    data, place = step.data, str(step.event.coordinate)
    match step.event.type:
        case "model.responded":
            rest = written.rest(data["turn_id"], data["step"], data["text"])
            return None if rest is None else frame("text_delta", rest, place)
        case "tool_call.started":
            began = {"callId": data["call_id"], "tool": data["tool"], "args": data["args"]}
            return frame("tool_start", began, place)
        case "tool_call.finished":
            ended = {
                "callId": data["call_id"], "tool": data["tool"], "content": data["content"],
                "resolution": data["resolution"],
            }  # fmt: skip
            return frame("tool_end", ended, place)
        case _:
            return None


def _may_end(item: Followed, step: Step) -> bool:
    """An item is over with its turn, joined another, or was cancelled before it had one."""
    kind = step.event.type
    if kind in ("item.merged", "item.dropped", "item.expired"):
        return bool(step.data["item_id"] == item.item_id)
    return kind == "turn.ended" or (kind == "item.cancelled" and step.data["turn_id"] is None)


async def _last(parts: Parts, item: Followed, step: Step) -> bytes | None:
    """The last frame, if the item ended here; a requeued one goes on in its next turn."""
    then = await items.item(Reading(parts.database), item.item_id)
    times = times_of(then.item)
    if step.event.type == "item.merged":
        merged = {
            "merged": True, "content": "", "reply": None, "itemId": item.item_id,
            "sessionId": item.session_id, "outcome": "merged", "mergedInto": step.data["into"],
        }  # fmt: skip
        return frame("done", merged, str(step.event.coordinate))
    if times.status not in TERMINAL or times.turn_id != step.data.get("turn_id"):
        return None
    session_id = then.activities[-1].session_id if then.activities else item.session_id
    data = {
        "reply": reply_of(then.item), "itemId": item.item_id, "sessionId": session_id,
        "outcome": times.outcome, "turnId": times.turn_id, "status": times.status,
    }  # fmt: skip
    kind = "done" if times.outcome == "completed" else "error"
    return frame(kind, data, str(step.event.coordinate))


def reply_of(item: ItemRow) -> str | None:
    """What the agent answered: all of it, or what it said of an answer that is incomplete."""
    match item.phase:
        case Done(outcome=Completed(reply=reply)):
            return reply
        case Done(outcome=Incomplete(reply=reply)):
            return reply or None
        case _:
            return None
