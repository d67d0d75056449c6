"""The tools by which an agent keeps things in mind, knows things, and looks back."""

from __future__ import annotations

from typing import Any, get_args

from undivided.domain.memory import (
    FOUND_AT_MOST,
    KEY_CHARS,
    QUERY_CHARS,
    ClearMemory,
    NoteMemory,
    RemoveKnowledge,
    SaveKnowledge,
    SearchKnowledge,
)
from undivided.domain.recall import (
    READ_AT_MOST,
    ListActivities,
    ReadActivity,
    RecallContext,
    Scope,
)
from undivided.domain.scenarios import JUDGE
from undivided.domain.tooling import Act, Acts, ToolOutcome
from undivided.workers.tools.tool import EVERYWHERE, Run, Tool, ToolContext, parameters

_KEY = {"type": "string", "minLength": 1, "maxLength": KEY_CHARS}
_CONTENT = {"type": "string", "minLength": 1}
_QUERY = {"type": "string", "maxLength": QUERY_CHARS}


_BEFORE = {"type": "integer", "minimum": 1, "maximum": 2**31 - 1}


def _limit(most: int) -> dict[str, Any]:
    return {"type": "integer", "minimum": 1, "maximum": most}


def _tool(name: str, description: str, schema: dict[str, Any], run: Run) -> Tool:
    return Tool(
        name=name, description=description, parameters=schema, effect="pure", interrupt="never",
        contexts=EVERYWHERE - {JUDGE}, run=run,
    )  # fmt: skip


async def _note(_context: ToolContext, args: dict[str, Any]) -> ToolOutcome:
    return Acts(NoteMemory(args["key"], args["content"]))


async def _clear(_context: ToolContext, args: dict[str, Any]) -> ToolOutcome:
    return Acts(ClearMemory(None if args.get("all") else args.get("key")))


async def _save(_context: ToolContext, args: dict[str, Any]) -> ToolOutcome:
    return Acts(SaveKnowledge("note", args["key"], args["content"]))


async def _delete(_context: ToolContext, args: dict[str, Any]) -> ToolOutcome:
    return Acts(RemoveKnowledge("note", args["key"]))


async def _search(_context: ToolContext, args: dict[str, Any]) -> ToolOutcome:
    return Acts(SearchKnowledge("note", args.get("query", ""), args.get("limit", FOUND_AT_MOST)))


async def _update_section(_context: ToolContext, args: dict[str, Any]) -> ToolOutcome:
    content = args.get("content", "")
    wanted: Act = RemoveKnowledge("section", args["section"])
    return Acts(SaveKnowledge("section", args["section"], content) if content else wanted)


async def _search_sections(_context: ToolContext, args: dict[str, Any]) -> ToolOutcome:
    return Acts(SearchKnowledge("section", args.get("query", ""), FOUND_AT_MOST))


async def _recall_activity(_context: ToolContext, args: dict[str, Any]) -> ToolOutcome:
    if "activity_id" in args:
        limit = args.get("limit", READ_AT_MOST)
        return Acts(ReadActivity(args["activity_id"], limit, args.get("before")))
    return Acts(ListActivities(args.get("type"), args.get("limit", 10)))


async def _recall_context(_context: ToolContext, args: dict[str, Any]) -> ToolOutcome:
    name = args.get("channel_key") or args.get("session_id") or ""
    return Acts(RecallContext(args["scope"], name, args.get("limit", 20), args.get("before")))


_NOTE = (
    "Keep something in mind under a key; what stood under it is replaced. You have few keys: the "
    "oldest of yours gives way to a fifth. Every prompt shows them."
)
_CLEAR = "Forget what you keep in mind under a key, or with all everything that you keep yourself."
_NOTED = parameters(("key", "content"), key=_KEY, content=_CONTENT)
_CLEARED = parameters((), key=_KEY, all={"type": "boolean"})
_SAVED = parameters(("key", "content"), key=_KEY, content=_CONTENT)

MEMORY = (
    _tool("update_working_memory", _NOTE, _NOTED, _note),
    _tool("update_notebook", _NOTE, _NOTED, _note),
    _tool("clear_working_memory", _CLEAR, _CLEARED, _clear),
    _tool("clear_notebook", _CLEAR, _CLEARED, _clear),
    _tool("memory_save", "Remember a note for good; memory_search finds it.", _SAVED, _save),
    _tool("memory_update", "Replace a note that you remember.", _SAVED, _save),
    _tool("memory_delete", "Forget a note.", parameters(("key",), key=_KEY), _delete),
    _tool(
        "memory_search",
        "Find notes by their words; without a query the last ones.",
        parameters((), query=_QUERY, limit=_limit(FOUND_AT_MOST)),
        _search,
    ),
    _tool(
        "memory_update_longterm",
        (
            "Write a section of what you always have in mind: facts, decisions, preferences. "
            "Without content the section is removed."
        ),
        parameters(("section",), section=_KEY, content={"type": "string"}),
        _update_section,
    ),
    _tool(
        "memory_search_longterm",
        "Find sections of what you always have in mind by their words.",
        parameters((), query=_QUERY),
        _search_sections,
    ),
    _tool(
        "recall_activity",
        (
            "Look back at what you did: the last activities, of one type if you name it; or with "
            "activity_id everything that was said and done in one. The answer's before, given "
            "again, shows what was earlier."
        ),
        parameters(
            (),
            activity_id=_KEY,
            type={"type": "string", "maxLength": KEY_CHARS},
            limit=_limit(READ_AT_MOST),
            before=_BEFORE,
        ),
        _recall_activity,
    ),
    _tool(
        "recall_context",
        (
            "Look back at what was said: in your chat with people (chat, or chat_session with "
            "its session_id), in a channel (channel_key), or in a session (session_id; else this "
            "one). The answer's before, given again, shows what was earlier."
        ),
        parameters(
            ("scope",),
            scope={"type": "string", "enum": list(get_args(Scope))},
            channel_key={"type": "string", "minLength": 1, "maxLength": 512},
            session_id=_KEY,
            limit=_limit(READ_AT_MOST),
            before=_BEFORE,
        ),
        _recall_context,
    ),
)
