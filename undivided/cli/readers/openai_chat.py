"""Chat messages as OpenAI-compatible APIs take them, as a list, {"messages": [...]} or JSONL.

The speaker is `name` when there is one, else `role`. A `user` is a person, unless the same name
also speaks as an assistant (logs of group chats show everybody else as `user`). Opening `system`
or `developer` messages without a name are what the conversation is about, not speech. An
assistant's `reasoning_content` (or `reasoning`) is a thought before its message. An assistant
message that only calls tools is spoken to the tool: its content is the calls, as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from undivided.cli.readers.conversation import Conversation, Spoken
from undivided.cli.readers.source import Entry, Source, described, text_field

FORMAT = "openai-chat"

_ROLES = ("system", "developer", "user", "assistant", "tool", "function")
_SETTING = ("system", "developer")


def recognises(source: Source) -> bool:
    """Whether this is a list of objects with a `role`, in any of the three shapes."""
    document = source.document
    if isinstance(document, dict):
        return "messages" in document or "role" in document
    if isinstance(document, list):
        return bool(document) and _has_role(document[0])
    return bool(source.lines) and _has_role(source.lines[0].value)


def read(source: Source) -> Conversation:
    """The conversation that a list of chat messages records."""
    entries = list(_entries(source))
    for entry in entries:
        _check(source, entry)
    opening = _opening(entries)
    spoken = entries[opening:]
    if not spoken:
        raise source.mistake("", "has no message of role user, assistant or tool")
    question = "\n\n".join(_content(source, entry) for entry in entries[:opening])
    agents = {_speaker(e.value) for e in spoken if e.value["role"] == "assistant"}
    said = tuple(part for entry in spoken for part in _said(source, entry, agents))
    return Conversation(title=_title(source), question=question, messages=said)


def _has_role(value: object) -> bool:
    return isinstance(value, dict) and "role" in value


def _entries(source: Source) -> Iterator[Entry]:
    document = source.document
    if isinstance(document, dict) and "messages" not in document:
        document = [document]
    if isinstance(document, dict):
        listed = document["messages"]
        if not isinstance(listed, list):
            raise source.mistake("messages", f"must be a list, not {described(listed)}")
        yield from (Entry(f"messages[{n}]", value) for n, value in enumerate(listed))
    elif isinstance(document, list):
        yield from (Entry(f"[{n}]", value) for n, value in enumerate(document))
    else:
        yield from source.lines


def _title(source: Source) -> str:
    document = source.document
    title = document.get("title") if isinstance(document, dict) else None
    return title if isinstance(title, str) and title else source.name


def _check(source: Source, entry: Entry) -> None:
    if not isinstance(entry.value, dict):
        problem = f"must be a message {{role, content, name?}}, not {described(entry.value)}"
        raise source.mistake(entry.where, problem)
    role = entry.value.get("role")
    if role not in _ROLES:
        raise source.mistake(entry.where, f'"role" must be one of {", ".join(_ROLES)}')
    if entry.value.get("name") is not None and not text_field(source, entry, "name").strip():
        raise source.mistake(entry.where, '"name" must not be empty')


def _opening(entries: list[Entry]) -> int:
    for index, entry in enumerate(entries):
        if entry.value["role"] not in _SETTING or entry.value.get("name"):
            return index
    return len(entries)


def _speaker(message: dict[str, Any]) -> str:
    return str(message.get("name") or message["role"]).strip()


def _said(source: Source, entry: Entry, agents: set[str]) -> Iterator[Spoken]:
    message, speaker = entry.value, _speaker(entry.value)
    person = message["role"] == "user" and speaker not in agents
    thought = message.get("reasoning_content") or message.get("reasoning")
    if isinstance(thought, str) and message["role"] == "assistant":
        yield Spoken(speaker, thought, thought=True)
    content = _content(source, entry)
    yield Spoken(speaker, content, addressed_to=_called(message), person=person)


def _called(message: dict[str, Any]) -> str | None:
    calls = message.get("tool_calls")
    if (isinstance(message.get("content"), str) and message["content"]) or not calls:
        return None
    match calls:
        case [{"function": {"name": str(name)}}]:
            return name
    return None


def _content(source: Source, entry: Entry) -> str:
    message = entry.value
    content = message.get("content")
    if isinstance(content, list):
        content = "".join(_part(source, entry, part) for part in content)
    for alternative in ("tool_calls", "function_call", "refusal"):
        if not content and message.get(alternative):
            other = message[alternative]
            content = other if isinstance(other, str) else json.dumps(other, ensure_ascii=False)
    if isinstance(content, str):
        return content
    problem = f'"content" must be text or a list of parts, not {described(content)}'
    raise source.mistake(entry.where, problem)


def _part(source: Source, entry: Entry, part: object) -> str:
    match part:
        case {"text": str(text)}:
            return text
        case {"type": str(kind)}:
            return f"[{kind}]"
    raise source.mistake(entry.where, 'a part of "content" must be an object with a "type"')
