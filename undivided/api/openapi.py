"""OpenAPI 3.1, from the very types that read bodies and write answers.

`CALLS` says for each route which body it takes, what it answers and which parameters it knows;
a test holds it against the routes there are.
"""

from __future__ import annotations

from typing import Any

import msgspec
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from msgspec import UNSET, Struct, UnsetType
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from undivided.api import bodies
from undivided.api.routes.health import Health, Readiness
from undivided.api.shapes import (
    accepted,
    agents,
    callbacks,
    events,
    heartbeat,
    items,
    knowledge,
    mind,
    people,
    records,
    sessions,
    why,
)

REF = "#/components/schemas/{name}"
PYDANTIC_REF = "#/components/schemas/{model}"
JSON, SSE, PROBLEM = "application/json", "text/event-stream", "application/problem+json"


class FieldMistake(Struct, frozen=True):
    """What is wrong with one field."""

    field: str
    detail: str


class Problem(Struct, frozen=True):
    """What every refusal looks like; `code` names the rule."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    errors: list[FieldMistake] | UnsetType = UNSET


class Call(Struct, frozen=True, kw_only=True):
    """What one route takes and answers."""

    answer: type[Any] | None = None
    body: type[BaseModel] | None = None
    takes: tuple[str, ...] = ()
    status: int = 200
    streams: bool = False


WHEN = ("at", "minPosition")
PAGE = ("limit", "cursor", *WHEN)
PARAMETERS: dict[str, tuple[str, dict[str, Any]]] = {
    "at": ("as it was at this coordinate or time", {"type": "string"}),
    "minPosition": ("wait until the log has come to this coordinate", {"type": "string"}),
    "limit": ("how many", {"type": "integer", "minimum": 1, "maximum": 500, "default": 50}),
    "cursor": ("`nextCursor` of the page before", {"type": "string"}),
    "offset": ("how many to pass over", {"type": "integer", "minimum": 0, "default": 0}),
    "type": ("only these types, separated by commas", {"type": "string"}),
    "category": ("only this category of types", {"type": "string"}),
    "status": ("only these statuses, separated by commas", {"type": "string"}),
    "sourceType": ("the same as `type`", {"type": "string"}),
    "counts": (
        "also count the items by this",
        {"type": "string", "enum": ["none", "sourceType"], "default": "none"},
    ),
    "q": ("with these words", {"type": "string"}),
    "kind": ("only this kind", {"type": "string", "enum": ["note", "section"]}),
    "agentId": ("of this agent", {"type": "string"}),
    "userId": ("of this person; else of the owner", {"type": "string"}),
    "unread": ("only what was not seen yet", {"type": "boolean", "default": False}),
    "activityId": ("of this activity", {"type": "string"}),
    "visibility": ("which messages", {"type": "string", "enum": ["visible", "all"]}),
    "after": ("from behind this coordinate on", {"type": "string"}),
    "stream": ("only these streams, separated by commas", {"type": "string"}),
    "wait": ("how many seconds to wait for the reply", {"type": "number", "minimum": 0}),
}
AGENT = "/api/agents/{agent_id}"
SESSION = "/api/sessions/{session_id}"
EVENT = "/api/events/{event_id}"
_C = Call
CALLS: dict[tuple[str, str], Call] = {
    ("post", "/api/agents"): _C(answer=agents.Agent, body=bodies.NewAgent, status=201),
    ("get", "/api/agents"): _C(answer=agents.AgentPage, takes=PAGE),
    ("get", AGENT): _C(answer=agents.Agent, takes=WHEN),
    ("patch", AGENT): _C(answer=agents.Agent, body=bodies.AgentChanges),
    ("delete", AGENT): _C(answer=agents.Agent),
    **{("post", f"{AGENT}/{verb}"): _C(answer=agents.Agent)
       for verb in ("start", "stop", "pause", "resume", "cancel-processing")},
    ("post", f"{AGENT}/mailbox"): _C(
        answer=accepted.AcceptedItem, body=bodies.NewStimulus, status=202),
    ("post", f"{AGENT}/mailbox:batch"): _C(
        answer=accepted.AcceptedBatch, body=bodies.Batch, status=202),
    ("post", f"{AGENT}/messages"): _C(
        answer=accepted.MessageAnswer, body=bodies.NewMessage, status=202, takes=("wait",),
        streams=True),
    ("get", f"{AGENT}/mind"): _C(answer=mind.MindShape, takes=WHEN),
    ("get", f"{AGENT}/mailbox"): _C(
        answer=mind.MailboxShape, takes=("type", "sourceType", "category", "status", "offset",
                                         "counts", *PAGE)),
    ("get", f"{AGENT}/decisions"): _C(answer=records.DecisionPage, takes=PAGE),
    ("get", f"{AGENT}/activities"): _C(answer=records.ActivityPage, takes=("type", *PAGE)),
    ("get", f"{AGENT}/activity-logs"): _C(
        answer=records.ActivityLog, takes=("activityId", *PAGE)),
    ("get", f"{AGENT}/knowledge"): _C(
        answer=knowledge.KnowledgeList, takes=("q", "kind", *PAGE)),
    ("get", f"{AGENT}/heartbeat"): _C(answer=heartbeat.Heartbeat, takes=WHEN),
    ("post", f"{AGENT}/heartbeat/trigger"): _C(answer=accepted.AcceptedItem, status=202),
    ("post", f"{AGENT}/daily-report"): _C(answer=accepted.AcceptedItem, status=202),
    ("get", "/api/items/{item_id}"): _C(answer=items.Item, takes=WHEN),
    ("get", "/api/items/{item_id}/why"): _C(answer=why.Why, takes=WHEN),
    ("get", "/api/sessions"): _C(answer=sessions.SessionPage, takes=("agentId", *PAGE)),
    ("get", SESSION): _C(answer=sessions.Session, takes=WHEN),
    ("get", f"{SESSION}/messages"): _C(
        answer=sessions.MessagePage, takes=("visibility", *PAGE)),
    ("post", f"{SESSION}/stop"): _C(answer=sessions.Session),
    ("post", f"{SESSION}/archive"): _C(answer=sessions.Session),
    ("delete", SESSION): _C(answer=sessions.Session),
    ("get", "/api/events"): _C(
        answer=events.EventPage, takes=("after", "stream", "type", *PAGE)),
    ("get", "/api/events/stream"): _C(takes=("after", "stream", "type"), streams=True),
    ("get", EVENT): _C(answer=events.EventShape, takes=WHEN),
    ("get", f"{EVENT}/causes"): _C(answer=events.EventPage, takes=WHEN),
    ("get", f"{EVENT}/effects"): _C(answer=events.EventPage, takes=PAGE),
    ("get", "/api/callbacks"): _C(
        answer=callbacks.CallbackPage, takes=("status", "type", "agentId", *PAGE)),
    ("delete", f"{AGENT}/wakeups/{{wakeup_id}}"): _C(answer=callbacks.CancelledWakeup),
    ("get", "/api/approvals"): _C(
        answer=people.ApprovalPage, takes=("status", "agentId", "userId", *PAGE)),
    ("get", "/api/approvals/{approval_id}"): _C(answer=people.Approval, takes=WHEN),
    ("post", "/api/approvals/{approval_id}"): _C(
        answer=people.Approval, body=bodies.ApprovalAnswer),
    ("get", "/api/notifications"): _C(
        answer=people.NotificationPage, takes=("unread", "type", "userId", "offset", *PAGE)),
    ("post", "/api/notifications/mark-all-read"): _C(answer=people.ReadMark, takes=("userId",)),
    ("post", "/api/notifications/{notification_id}/read"): _C(answer=people.ReadMark),
    ("post", "/api/recordings"): _C(answer=accepted.Recording, status=201),
    ("get", "/healthz"): _C(answer=Health),
    ("get", "/readyz"): _C(answer=Readiness),
}  # fmt: skip


def describe(app: FastAPI) -> dict[str, Any]:
    """The whole description of `app`."""
    told = get_openapi(
        title=app.title, version=app.version, openapi_version="3.1.0", routes=app.routes,
        description="One undivided attention for every LLM agent.",
    )  # fmt: skip
    shapes, schemas = _schemas()
    for (method, path), call in CALLS.items():
        _describe_call(told["paths"][path][method], method, call, shapes)
    told["components"] = {"schemas": schemas}
    return told


def _schemas() -> tuple[dict[Any, dict[str, Any]], dict[str, Any]]:
    """How each type is referred to, and the components that all of them need."""
    answers = [call.answer for call in CALLS.values() if call.answer is not None]
    kinds = [*dict.fromkeys(answers), Problem]
    found, components = msgspec.json.schema_components(kinds, ref_template=REF)
    shapes: dict[Any, dict[str, Any]] = dict(zip(kinds, found, strict=True))
    taken = list(dict.fromkeys(call.body for call in CALLS.values() if call.body is not None))
    named, more = models_json_schema(
        [(kind, "validation") for kind in taken], ref_template=PYDANTIC_REF
    )
    shapes |= {kind: named[(kind, "validation")] for kind in taken}
    return shapes, {**components, **more.get("$defs", {})}


def _describe_call(
    told: dict[str, Any], method: str, call: Call, shapes: dict[Any, dict[str, Any]]
) -> None:
    parameters = told.setdefault("parameters", [])
    for name in call.takes:
        text, schema = PARAMETERS[name]
        parameters.append({"name": name, "in": "query", "description": text, "schema": schema})
    if method == "post":
        parameters.append(_header("Idempotency-Key", "one effect for each key"))
    if call.streams:
        parameters.append(_header("Last-Event-ID", "go on behind this event"))
    if call.body is not None:
        content = {JSON: {"schema": shapes[call.body]}}
        told["requestBody"] = {"required": True, "content": content}
    answers: dict[str, Any] = {}
    if call.answer is not None:
        answers[JSON] = {"schema": shapes[call.answer]}
    if call.streams:
        answers[SSE] = {"schema": {"type": "string"}}
    refusal = {"description": "Refused", "content": {PROBLEM: {"schema": shapes[Problem]}}}
    told["responses"] = {
        str(call.status): {"description": "Done", "content": answers},
        "default": refusal,
    }


def _header(name: str, text: str) -> dict[str, Any]:
    return {"name": name, "in": "header", "description": text, "schema": {"type": "string"}}
