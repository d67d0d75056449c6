"""The transcript of a session: a pure function of its events."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, TypeGuard

from msgspec import Struct

from undivided.domain.events import sessions as s
from undivided.domain.events.catalogue import Event
from undivided.domain.recorded import session_stream
from undivided.domain.stimuli import REGISTRY
from undivided.store.blobs import PAGE_BYTES, blob_texts, how_many_fit
from undivided.store.codec import decode_event
from undivided.store.queries.reading import Reading

Saying = (
    s.TurnStarted | s.ModelResponded | s.ToolCallFinished | s.MessagePosted | s.ActivityNoted
)  # fmt: skip
Role = Literal["user", "assistant", "tool"]
Visibility = Literal["visible", "hidden"]
TurnOrigin = Literal["user", "agent_continuation", "scheduled"]

SCHEDULED = frozenset(kind.name for kind in REGISTRY.values() if kind.scheduled)
SAYING = [
    "turn.started", "model.responded", "tool_call.finished", "message.posted", "activity.noted",
]  # fmt: skip
HIDDEN = [kind.name for kind in REGISTRY.values() if kind.category == "orchestration"]
"""Types whose turns begin with something that a provider sees and people do not."""

_PAGE = """
SELECT position, id, version, type, schema, data::text, recorded_at, origin, found
  FROM (SELECT page.*, count(*) OVER () AS found,
               sum(bytes) OVER (ORDER BY version) - bytes AS before FROM (
SELECT e.txid || '-' || e.position AS position, e.id::text, e.version, e.type, e.schema, e.data,
       e.recorded_at, coalesce(t.origin, '') AS origin, e.bytes
  FROM events e
  LEFT JOIN turns t ON t.tenant = e.tenant AND t.id = e.data->>'turn_id'
 WHERE e.tenant = %(tenant)s AND e.stream = %(stream)s AND e.version > %(after)s
   AND e.type = ANY(%(saying)s)
   AND (e.txid, e.position) <= (%(txid)s, %(position)s)
   AND (%(all)s OR e.type NOT IN ('turn.started', 'activity.noted')
        OR (e.type = 'turn.started' AND NOT coalesce(t.origin, '') = ANY(%(hidden)s)))
 ORDER BY e.version LIMIT %(limit)s) page) counted
 WHERE before <= %(bytes)s ORDER BY version"""


class Message(Struct, frozen=True, kw_only=True):
    """One message of a transcript, and the event that it is."""

    id: str
    position: str
    version: int
    event: Saying
    origin: str
    at: datetime

    @property
    def role(self) -> Role:
        """Who speaks."""
        match self.event:
            case s.TurnStarted() | s.ActivityNoted():
                return "user"
            case s.ModelResponded() | s.MessagePosted():
                return "assistant"
            case s.ToolCallFinished():
                return "tool"

    @property
    def content(self) -> str:
        """What is said."""
        match self.event:
            case s.TurnStarted(input=text) | s.ModelResponded(text=text):
                return text
            case s.ToolCallFinished(content=text) | s.MessagePosted(content=text):
                return text
            case s.ActivityNoted(line=text):
                return text

    @property
    def source(self) -> str:
        """Where it comes from: the type of stimulus, the model, or the tool."""
        match self.event:
            case s.TurnStarted():
                return self.origin
            case s.ModelResponded(model=model):
                return model or "model"
            case s.ToolCallFinished(tool=tool):
                return tool
            case s.MessagePosted(source=source):
                return source
            case s.ActivityNoted():
                return "activity"

    @property
    def visibility(self) -> Visibility:
        """Hidden is what only a provider is shown."""
        hidden = isinstance(self.event, s.TurnStarted) and self.origin in HIDDEN
        hidden = hidden or isinstance(self.event, s.ActivityNoted)
        return "hidden" if hidden else "visible"

    @property
    def turn_origin(self) -> TurnOrigin:
        """What began the turn: somebody, a run that goes on, or a schedule."""
        if self.origin in HIDDEN:
            return "agent_continuation"
        return "scheduled" if self.origin in SCHEDULED else "user"


async def messages(
    reading: Reading, session_id: str, after: int, limit: int, hidden_too: bool
) -> tuple[list[Message], bool]:
    """A page of a session's messages from behind version `after`, and whether more follow.

    It holds at most `limit` of them, fewer if they are large, and one at least.
    """
    rows = await reading.rows(
        _PAGE,
        stream=session_stream(session_id),
        after=after,
        limit=limit + 1,
        bytes=PAGE_BYTES,
        all=hidden_too,
        saying=SAYING,
        hidden=HIDDEN,
        **reading.past(),
    )
    fitting = await how_many_fit(reading.database, [row[5] for row in rows[:limit]])
    blobs = await blob_texts(reading.database, [row[5] for row in rows[:fitting]])
    page = []
    for position, event_id, version, name, schema, data, at, origin, _ in rows[:fitting]:
        event = decode_event(name, schema, data, blobs)
        if is_message(event):
            page.append(
                Message(
                    id=event_id,
                    position=position,
                    version=version,
                    event=event,
                    origin=origin,
                    at=at,
                )
            )
    return page, bool(rows) and rows[0][8] > fitting


def is_message(
    event: Event | None,
) -> TypeGuard[Saying]:
    """Whether an event is a message of its session's transcript."""
    return isinstance(event, Saying)
