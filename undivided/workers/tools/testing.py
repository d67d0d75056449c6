"""Test tools: what outside checks drive turns with. Registered only where settings ask for it.

`test_sleep` and `test_append` exist in one variant per effect; the plain names choose the
variant by their `effect` argument, so that the effect of a call is known before it runs.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, get_args

import msgspec

from undivided.domain.tooling import Effect, Raised, Returned, ToolOutcome
from undivided.workers.tools import witness
from undivided.workers.tools.blocking import blocking
from undivided.workers.tools.tool import EVERYWHERE, Run, Tool, ToolContext, parameters

EFFECTS: tuple[Effect, ...] = get_args(Effect)
_EFFECT = {"type": "string", "enum": list(EFFECTS)}
_SECONDS = {"type": "number", "minimum": 0, "maximum": 86_400}
_BIGGEST = 512 * 1024 * 1024


async def _test_sleep(_context: ToolContext, args: dict[str, Any]) -> ToolOutcome:
    await asyncio.sleep(args["seconds"])
    return Returned(f"slept {args['seconds']} s")


def _append(_context: ToolContext, args: dict[str, Any]) -> ToolOutcome:
    witness.append(Path(args["path"]), args["line"])
    return Returned("appended")


def _append_idempotent(context: ToolContext, args: dict[str, Any]) -> ToolOutcome:
    new = witness.append_once(Path(args["path"]), args["line"], context.idempotency_key)
    return Returned("appended" if new else "appended already")


async def _test_fail(_context: ToolContext, args: dict[str, Any]) -> ToolOutcome:
    return Raised(args["message"])


async def _test_return(_context: ToolContext, args: dict[str, Any]) -> ToolOutcome:
    value = args["value"]
    return Returned(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _test_big(_context: ToolContext, args: dict[str, Any]) -> ToolOutcome:
    return Returned("x" * int(args["bytes"]))


def _plain(name: str, description: str, schema: dict[str, Any], run: Run) -> Tool:
    return Tool(name, description, schema, "pure", "cancel_safe", EVERYWHERE, run)


def _family(plain: Tool, runs: dict[Effect, Run]) -> dict[Effect, Tool]:
    """The variants of a tool, one per effect; as `effect` they take no other than theirs."""
    properties = plain.parameters["properties"]
    return {
        effect: msgspec.structs.replace(
            plain,
            name=f"{plain.name}_{effect}",
            description=f"{plain.description} Its effect is {effect}.",
            parameters=parameters(
                tuple(plain.parameters["required"]),
                **{**properties, "effect": {"type": "string", "enum": [effect]}},
            ),
            effect=effect,
            run=runs[effect],
        )
        for effect in EFFECTS
    }


TEST_SLEEP = _plain(
    "test_sleep",
    "Take a number of seconds, as a slow tool does.",
    parameters(("seconds",), seconds=_SECONDS, effect=_EFFECT),
    _test_sleep,
)

TEST_APPEND = msgspec.structs.replace(
    _plain(
        "test_append",
        "Append a line to a file.",
        parameters(
            ("path", "line"),
            path={"type": "string", "minLength": 1},
            line={"type": "string"},
            effect=_EFFECT,
        ),
        blocking(_append),
    ),
    effect="once",
    interrupt="never",
)

FAMILIES: dict[str, dict[Effect, Tool]] = {
    "test_sleep": _family(TEST_SLEEP, dict.fromkeys(EFFECTS, _test_sleep)),
    "test_append": _family(
        TEST_APPEND,
        {
            "pure": blocking(_append),
            "idempotent": blocking(_append_idempotent),
            "once": blocking(_append),
        },
    ),
}
"""The variants behind each plain name, by effect."""

TEST_TOOLS = (
    TEST_SLEEP,
    TEST_APPEND,
    _plain(
        "test_fail",
        "Fail with a message.",
        parameters(("message",), message={"type": "string"}),
        _test_fail,
    ),
    _plain(
        "test_return",
        "Return a value: text as it is, anything else as JSON.",
        parameters(("value",), value={}),
        _test_return,
    ),
    _plain(
        "test_big",
        "Return a text of a number of bytes.",
        parameters(("bytes",), bytes={"type": "integer", "minimum": 0, "maximum": _BIGGEST}),
        blocking(_test_big),
    ),
    *(variant for family in FAMILIES.values() for variant in family.values()),
)
