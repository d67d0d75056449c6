"""Script models: which prepared answer a request gets, as a pure function of the request.

A script is a list of rules; the first whose conditions all hold answers. Nothing else enters
the choice (no clock, no counter, no randomness), so any worker gives the same answer again
after a crash. `script_document` makes a `Script` of a decoded file; `workers/` reads the file.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

from msgspec import Struct

from undivided.domain.calls import named_calls
from undivided.domain.dialogue import ModelRequest, ToolCall, Usage
from undivided.domain.errors import FailureKind
from undivided.domain.marker import COMPLETION_MARKER

INPUT = "{input}"
"""What stands in a scripted reply for the newest user-role content."""


class ScriptedCall(Struct, frozen=True):
    """A tool call that a rule answers with."""

    tool: str
    args: dict[str, Any]


class Rule(Struct, frozen=True, kw_only=True):
    """One prepared answer and the requests that it is for; a condition of None always holds.

    `agent` is an agent id or the id of its definition; `contains` a regular expression searched
    in the newest user-role content; `step` the index of the request within its turn. `delay`
    passes before the first token, the reply comes in `chunks` deltas, `error` comes in place of
    an answer. `line` is where the rule stands in its file.
    """

    agent: str | None = None
    scenario: str | None = None
    contains: str | None = None
    step: int | None = None
    reply: str = "ok"
    calls: tuple[ScriptedCall, ...] = ()
    delay: timedelta = timedelta()
    chunks: int = 1
    marker: bool = True
    error: FailureKind | None = None
    usage: Usage = Usage(requests=1)
    line: int | None = None


UNMATCHED = Rule()
"""The answer where no rule matches."""


class Script(Struct, frozen=True):
    """The rules of one script file, in order; `name` is the file, for people."""

    name: str
    rules: tuple[Rule, ...]


class Answer(Struct, frozen=True, kw_only=True):
    """What a script says to one request; `origin` names the file and rule that said it."""

    text: str
    calls: tuple[ToolCall, ...]
    delay: timedelta
    chunks: int
    error: FailureKind | None
    usage: Usage
    origin: str


def choose(script: Script, request: ModelRequest) -> Answer:
    """The answer of the first rule that matches `request`; "ok" where none does."""
    rule = next((rule for rule in script.rules if _matches(rule, request)), UNMATCHED)
    text = rule.reply.replace(INPUT, request.newest_input)
    if rule.marker and not rule.calls:
        text = completed(text, request)
    return Answer(
        text=text,
        calls=named_calls(request, ((call.tool, call.args) for call in rule.calls)),
        delay=rule.delay,
        chunks=rule.chunks,
        error=rule.error,
        usage=rule.usage,
        origin=_origin(script, rule),
    )


def wants_marker(request: ModelRequest) -> bool:
    """Whether the request asks for the completion marker: its instructions quote it."""
    return COMPLETION_MARKER in request.instructions


def completed(text: str, request: ModelRequest) -> str:
    """`text` with the completion marker at its end, where the request wants one.

    A response that calls tools does not end the handling, so callers leave those alone; and
    nothing said is an empty reply, which says nothing of being done.
    """
    if not text.strip() or not wants_marker(request) or COMPLETION_MARKER in text:
        return text
    return f"{text}\n{COMPLETION_MARKER}"


def deltas(text: str, chunks: int) -> tuple[str, ...]:
    """`text` in `chunks` non-empty parts of nearly equal length; fewer if it is shorter."""
    count = min(chunks, len(text))
    return tuple(
        text[len(text) * part // count : len(text) * (part + 1) // count] for part in range(count)
    )


def _matches(rule: Rule, request: ModelRequest) -> bool:
    return (
        (rule.agent is None or rule.agent in (request.agent_id, request.definition))
        and (rule.scenario is None or rule.scenario == request.scenario)
        and (rule.step is None or rule.step == request.step)
        and (rule.contains is None or re.search(rule.contains, request.newest_input) is not None)
    )


def _origin(script: Script, rule: Rule) -> str:
    if rule is UNMATCHED:
        return f"{script.name}, no rule"
    return f"{script.name}, rule at line {rule.line}" if rule.line else f"{script.name}, a rule"
