"""Who&When failure logs: a question and the history of the team that tried to answer it.

Two shapes, told apart by whether entries carry a `name`. Without (a team led by an
orchestrator) `role` is the speaker and says more in brackets: `human`, `Orchestrator (thought)`,
`Orchestrator (-> WebSurfer)`, `Orchestrator (termination condition)`. With (a group chat) `name`
is the speaker, `role` only the provider's word for it, and everything is said to everybody.
"""

from __future__ import annotations

import re

from undivided.cli.readers.conversation import Conversation, Spoken
from undivided.cli.readers.source import Entry, Source, described, text_field

FORMAT = "who-and-when"

_PERSON = "human"
_ADDRESSED = re.compile(r"^(?P<speaker>.*\S)\s*\(->\s*(?P<to>[^()]*[^()\s])\s*\)$", re.DOTALL)
_SILENT = re.compile(r"^(?P<speaker>.*\S)\s*\((?:thought|termination condition)\)$", re.DOTALL)


def recognises(source: Source) -> bool:
    """Whether this is a document with a `history`."""
    return isinstance(source.document, dict) and "history" in source.document


def read(source: Source) -> Conversation:
    """The conversation of one failure log; what was only thought is marked as such."""
    document = source.document
    history = document.get("history") if isinstance(document, dict) else None
    if not isinstance(history, list) or not history:
        raise source.mistake("history", "must be a list of {content, role, name?} with entries")
    question = document.get("question", "")
    if not isinstance(question, str):
        raise source.mistake("question", f"must be text, not {described(question)}")
    entries = [Entry(f"history[{index}]", value) for index, value in enumerate(history)]
    named = any(isinstance(value, dict) and value.get("name") for value in history)
    said = tuple(_said(source, entry, named) for entry in entries)
    return Conversation(title=source.name, question=question, messages=said)


def _said(source: Source, entry: Entry, named: bool) -> Spoken:
    content = text_field(source, entry, "content")
    speaker = text_field(source, entry, "name" if named else "role").strip()
    if not speaker:
        raise source.mistake(entry.where, "the speaker's name is empty")
    return Spoken(speaker, content) if named else _by_role(speaker, content)


def _by_role(role: str, content: str) -> Spoken:
    if addressed := _ADDRESSED.match(role):
        return Spoken(addressed["speaker"], content, addressed_to=addressed["to"])
    if silent := _SILENT.match(role):
        return Spoken(silent["speaker"], content, thought=True)
    return Spoken(role, content, person=role == _PERSON)
