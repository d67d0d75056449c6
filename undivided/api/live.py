"""From events of the log to the names under which a WebSocket tells them.

| frame | payload | of which events |
|---|---|---|
| `agent:mailbox` | `{agentId, item}` | an item came, went or waits again |
| `agent:decision` | `{agentId, decision}` | every one that carries a decision |
| `agent:attention` | `{agentId, state, currentFocus}` | the focus began, waits, goes on, ended |
| `agent:focus` | `{agentId, focus, mailboxDepth}` | the focus began or is over |
| `agent:update`, `agent:started` … | `{agentId, …}` | an agent's life and configuration |
| `agent:triage`, `agent:incomplete` | `{agentId, …}` | the events of these names |
| `agent:activity_log` | `{agentId, log}` | steps of a turn |
| `chat:proactive_message` | `{agentId, sessionId, message, metadata}` | an agent wrote first |
| `notification` | the notification | a person is told something; goes to that person alone |

Every event is told for itself: none stands for others that came shortly before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct

from undivided.api.answers import instant
from undivided.domain.notifications import EVERYBODY, SYSTEM
from undivided.projections.people import GIVEN_UP
from undivided.store.wording import camel, in_camel_case

Data = dict[str, Any]
Depths = Mapping[str, int]

ITEM_STATUS = {
    "item.accepted": "queued", "item.picked": "processing", "item.resumed": "processing",
    "item.completed": "completed", "item.requeued": "queued", "item.resurfaced": "queued",
    "item.merged": "merged", "item.deferred": "deferred", "item.dropped": "dropped",
    "item.cancelled": "cancelled", "item.dead_lettered": "dead_letter",
    "item.reprioritized": "queued",
}  # fmt: skip
"""What an item's status is after an event."""
LIFE = {
    "agent.created": "agent:update", "agent.configured": "agent:update",
    "policy.adopted": "agent:update", "agent.started": "agent:started",
    "agent.stopped": "agent:stopped", "agent.paused": "agent:paused",
    "agent.resumed": "agent:resumed", "agent.deleted": "agent:removed",
}  # fmt: skip
NAMED = {"triage.applied": "agent:triage", "agent.incomplete": "agent:incomplete"}
STEPS = frozenset({
    "turn.started", "model.responded", "tool_call.started", "tool_call.finished",
    "turn.updated", "turn.ended",
})  # fmt: skip
BEGINS = frozenset({"item.picked", "item.resumed"})
ENDS = frozenset({
    "item.completed", "item.requeued", "item.deferred", "item.cancelled", "item.dead_lettered",
})  # fmt: skip
SAID = ("input", "text", "content", "tool")
SHOWN = 4_000
"""How much of what a step said goes into a frame; all of it is in the activity's log."""
TOLD = frozenset({"notification.posted", "notice.posted"})


class Frame(Struct, frozen=True):
    """One frame. It is for `user_id` alone, or about `agent_id`, where that is given."""

    type: str
    payload: Data
    agent_id: str | None = None
    user_id: str | None = None


class Heard(Struct, frozen=True, kw_only=True):
    """An event as it is told on: `data` and `meta` as stored."""

    id: str
    type: str
    version: int
    data: Data
    meta: Data
    at: datetime


class Listener(Struct):
    """Who listens, and to which agents; None means to all."""

    user_id: str
    agents: set[str] | None = None

    def wants(self, frame: Frame) -> bool:
        """Whether a frame is for this listener."""
        if frame.user_id is not None:
            return frame.user_id in (self.user_id, EVERYBODY)
        return self.agents is None or frame.agent_id in self.agents

    def change(self, more: Iterable[str], fewer: Iterable[str]) -> None:
        """Listen to some agents more, and to some no more."""
        self.agents = ((self.agents or set()) | set(more)) - set(fewer)


def agent_of(heard: Heard) -> str | None:
    """The agent that an event is about; steps are told by whoever takes them."""
    named = heard.data.get("agent_id")
    if isinstance(named, str):
        return named
    actor = str(heard.meta.get("actor", ""))
    return actor.removeprefix("agent:") if actor.startswith("agent:") else None


def frames(heard: Heard, depths: Depths) -> Iterator[Frame]:
    """What one event is told as; `depths` are the waiting items of agents."""
    agent_id = agent_of(heard)
    if heard.type in TOLD:
        yield Frame("notification", _notification(heard), user_id=heard.data.get("user_id"))
    if agent_id is None:
        return
    for makes in (_of_item, _of_focus, _of_life, _of_step):
        for name, payload in makes(heard, depths.get(agent_id)):
            yield Frame(name, {"agentId": agent_id, **payload}, agent_id)


Made = Iterator[tuple[str, Data]]
Makes = Callable[[Heard, int | None], Made]


def _of_item(heard: Heard, _depth: int | None) -> Made:
    if heard.type in ITEM_STATUS:
        yield "agent:mailbox", {"item": _item(heard)}
    decision = heard.data.get("decision")
    if isinstance(decision, dict):
        yield "agent:decision", {"decision": _decision(heard, decision)}


def _of_focus(heard: Heard, depth: int | None) -> Made:
    data = heard.data
    focus: Data | None = None
    if heard.type in BEGINS:
        focus = {
            "mailboxItemId": data["item_id"], "turnId": data["turn_id"],
            "sessionId": data["session_id"], "startedAt": instant(heard.at),
        }  # fmt: skip
        yield "agent:attention", {"state": "focused", "currentFocus": focus}
    elif heard.type in ENDS and data.get("turn_id") is not None:
        yield "agent:attention", {"state": "idle", "currentFocus": None}
    elif heard.type == "triage.began":
        yield "agent:attention", {"state": "deciding", "currentFocus": None}
        return
    elif heard.type in ("focus.suspended", "focus.regained"):
        state = "suspended" if heard.type == "focus.suspended" else "focused"
        yield "agent:attention", {"state": state, "currentFocus": {"turnId": data["turn_id"]}}
        return
    else:
        return
    yield "agent:focus", {"focus": focus, "mailboxDepth": depth}


def _of_life(heard: Heard, _depth: int | None) -> Made:
    if heard.type in LIFE:
        yield LIFE[heard.type], _told(heard)
    if heard.type in NAMED:
        yield NAMED[heard.type], _told(heard)


def _of_step(heard: Heard, _depth: int | None) -> Made:
    data = heard.data
    if heard.type == "message.posted":
        metadata = {"notifyUser": True} | _present(data, "priority", "task_id", "requirement_id")
        yield "chat:proactive_message", {
            "sessionId": data["session_id"], "messageId": heard.id, "source": data["source"],
            "message": data["content"], "metadata": metadata,
        }  # fmt: skip
    if heard.type in STEPS:
        said = next((data[key] for key in SAID if data.get(key)), "")
        log = {
            "id": heard.id, "activityId": data["turn_id"], "seq": heard.version,
            "type": heard.type, "content": said[:SHOWN], "createdAt": instant(heard.at),
        }  # fmt: skip
        yield "agent:activity_log", {"log": log | _present(data, "tool", "call_id", "args")}


def _told(heard: Heard) -> Data:
    told = in_camel_case(heard.type, heard.data)
    return {name: value for name, value in told.items() if name not in ("agent_id", "agentId")}


def _item(heard: Heard) -> Data:
    data, status = heard.data, ITEM_STATUS[heard.type]
    item = {"id": data["item_id"], "status": status} | _present(
        data, "source_type", "priority", "turn_id"
    )
    if heard.type == "item.merged":
        item["mergedInto"] = data["into"]
    if heard.type == "item.accepted":
        payload = data["payload"]
        summary = payload.get("summary") or payload["content"][:200]
        item |= {"summary": summary, "queuedAt": instant(heard.at)}
        item |= _present(payload, "task_id", "requirement_id")
    return item


def _decision(heard: Heard, made: Data) -> Data:
    return {
        "id": made["id"], "decisionType": made["type"], "rule": made["rule"],
        "reasoning": made["reasoning"],
        "mailboxItemId": heard.data.get("item_id", heard.data.get("primary")),
        "context": made["inputs"], "policyVersion": made["policy_version"],
        "createdAt": instant(heard.at),
    }  # fmt: skip


def _notification(heard: Heard) -> Data:
    data = heard.data
    if heard.type == "notice.posted":
        return {
            "id": data["notice_id"], "userId": data["user_id"], "agentId": data["agent_id"],
            "type": SYSTEM, "title": GIVEN_UP, "body": data["text"], "priority": "high",
            "actionType": "none", "actionTarget": None, "metadata": {},
            "createdAt": instant(heard.at),
        }  # fmt: skip
    action = data.get("action", {})
    kind = action.get("type", "none")
    return {
        "id": data["notification_id"], "userId": data["user_id"],
        "agentId": data.get("agent_id"), "type": data["kind"], "title": data["title"],
        "body": data["body"], "priority": data["priority"], "actionType": kind,
        "actionTarget": _present(action, "path", "agent_id", "session_id") or None,
        "metadata": _present(data, "approval_id", "task_id", "requirement_id"),
        "createdAt": instant(heard.at),
    }  # fmt: skip


def _present(data: Data, *names: str) -> Data:
    return {camel(name): data[name] for name in names if data.get(name) is not None}
