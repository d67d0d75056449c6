"""Our own export: a header line, then one event a line as `GET /api/events` shows it.

Read in two ways. As a conversation: what reached the agents and what they answered; working
memory that a model wrote is what its agent thought. As transcripts: every turn of every
session with its model responses and tool results, which is what a rehearsal of an existing
agent runs again and compares with.

An export of several agents holds a message twice, as its sender's reply and as its reader's
input; the conversation has it once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, assert_never

from msgspec import Struct, ValidationError, convert

from undivided.cli.readers.conversation import Conversation, Spoken
from undivided.cli.readers.source import Entry, Source, described
from undivided.store.wording import as_stored

FORMAT = "undivided"
HEADER = "undivided-export"
VERSION = 1

REMEMBERS = "update_working_memory"


class Created(Struct, frozen=True):
    """An agent and the name it goes by."""

    agent_id: str
    name: str


class Payload(Struct, frozen=True):
    """What a stimulus says; `extra` is its producer's own."""

    content: str
    summary: str = ""
    task_id: str | None = None
    requirement_id: str | None = None
    extra: dict[str, Any] = {}


class Sender(Struct, frozen=True):
    """Who sent a stimulus, as far as was known."""

    id: str | None = None
    name: str | None = None
    role: str = "system"


class Accepted(Struct, frozen=True):
    """A stimulus that reached a mailbox."""

    item_id: str
    source_type: str
    payload: Payload
    sender: Sender = Sender()
    priority: int | None = None


class Started(Struct, frozen=True):
    """The beginning of a turn; `input` is what the model was told."""

    turn_id: str
    session_id: str
    agent_id: str
    item_ids: tuple[str, ...]
    input: str


class Call(Struct, frozen=True):
    """A tool call that a model asked for."""

    id: str
    tool: str
    args: dict[str, Any]


class Responded(Struct, frozen=True):
    """One recorded model response."""

    turn_id: str
    text: str
    calls: tuple[Call, ...] = ()


class ToolResult(Struct, frozen=True):
    """What one tool call was answered."""

    turn_id: str
    call_id: str
    tool: str
    content: str


class Fate(Struct, frozen=True):
    """The kind of outcome."""

    type: str


class Ended(Struct, frozen=True):
    """How a turn ended."""

    turn_id: str
    outcome: Fate


_Event = Created | Accepted | Started | Responded | ToolResult | Ended

# Which events are read, by their stored name; all others are passed over.
_READ: dict[str, type[_Event]] = {
    "agent.created": Created,
    "item.accepted": Accepted,
    "turn.started": Started,
    "model.responded": Responded,
    "tool_call.finished": ToolResult,
    "turn.ended": Ended,
}


class RecordedTurn(Struct):
    """One turn as the log tells it: what started it, each step, how it ended."""

    started: Started
    stimuli: tuple[Accepted, ...]
    steps: list[Responded | ToolResult]
    outcome: str = "unfinished"

    def responses(self) -> tuple[Responded, ...]:
        """The model's share of the steps."""
        return tuple(step for step in self.steps if isinstance(step, Responded))


class Export(Struct, frozen=True):
    """The turns in the order they started, and the agents' names by id."""

    turns: tuple[RecordedTurn, ...]
    names: dict[str, str]

    def name(self, agent_id: str) -> str:
        """What an agent is called; its id where its creation is not in the export."""
        return self.names.get(agent_id, agent_id)


def recognises(source: Source) -> bool:
    """Whether the first line is the header of an export."""
    first = source.lines[0].value if source.lines else source.document
    return isinstance(first, dict) and HEADER in first


def read(source: Source) -> Conversation:
    """The conversation that exported events tell."""
    export = read_export(source)
    if not export.turns:
        raise source.mistake("", "has no turn.started event, so nobody spoke in it")
    opening = next((s.payload.content for s in export.turns[0].stimuli), "")
    return Conversation(source.name, opening, tuple(_conversed(export)))


def read_export(source: Source) -> Export:
    """The same events as transcripts."""
    lines = source.lines or (Entry("line 1", source.document),)
    header = lines[0].value
    version = header.get(HEADER) if isinstance(header, dict) else None
    if version != VERSION:
        raise source.mistake(lines[0].where, f'must be a header with "{HEADER}": {VERSION}')
    return _folded(event for entry in lines[1:] if (event := _event(source, entry)))


def _event(source: Source, entry: Entry) -> _Event | None:
    match entry.value:
        case {"type": str(name), "data": dict(data)}:
            shape = _READ.get(name)
            try:
                return convert(as_stored(name, data), shape) if shape else None
            except ValidationError as error:
                raise source.mistake(entry.where, f"{name}: {error}") from error
    problem = f"must be an event {{type, data, ...}}, not {described(entry.value)}"
    raise source.mistake(entry.where, problem)


def _folded(events: Iterable[_Event]) -> Export:
    names: dict[str, str] = {}
    stimuli: dict[str, Accepted] = {}
    turns: dict[str, RecordedTurn] = {}
    for event in events:
        match event:
            case Created():
                names[event.agent_id] = event.name
            case Accepted():
                stimuli[event.item_id] = event
            case Started():
                focus = tuple(stimuli[item] for item in event.item_ids if item in stimuli)
                turns[event.turn_id] = RecordedTurn(event, focus, [])
            case Responded() | ToolResult():
                if event.turn_id in turns:
                    turns[event.turn_id].steps.append(event)
            case Ended():
                if event.turn_id in turns:
                    turns[event.turn_id].outcome = event.outcome.type
            case _:
                assert_never(event)
    return Export(tuple(turns.values()), names)


def _conversed(export: Export) -> Iterator[Spoken]:
    present = {export.name(turn.started.agent_id) for turn in export.turns}
    replied: set[tuple[str, str]] = set()
    for turn in export.turns:
        agent = export.name(turn.started.agent_id)
        for heard in _heard(export, turn, agent):
            if heard.speaker not in present or (heard.speaker, heard.content) not in replied:
                yield heard
        for answer in _answered(turn, agent):
            yield answer
            replied.add((agent, answer.content))


def _heard(export: Export, turn: RecordedTurn, agent: str) -> Iterator[Spoken]:
    if not turn.stimuli:
        yield Spoken("user", turn.started.input, addressed_to=agent, person=True)
    for stimulus in turn.stimuli:
        sender = stimulus.sender
        if sender.role == "system":
            continue  # a timer or an event of the runtime: nobody said it
        who = sender.name or export.name(sender.id or sender.role)
        person = sender.role == "user"
        yield Spoken(who, stimulus.payload.content, addressed_to=agent, person=person)


def _answered(turn: RecordedTurn, agent: str) -> Iterator[Spoken]:
    for response in turn.responses():
        if response.text and response.calls:
            yield Spoken(agent, response.text, thought=True)
        for call in response.calls:
            if call.tool == REMEMBERS and isinstance(call.args.get("content"), str):
                yield Spoken(agent, call.args["content"], thought=True)
        if response.text and not response.calls:
            yield Spoken(agent, response.text)
