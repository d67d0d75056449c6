"""Which tools there are, who may see them, and which one a call means."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from undivided.domain.deliberation_prompt import DELIBERATION_TOOLS
from undivided.domain.scenarios import DELIBERATION
from undivided.domain.tooling import Raised, ToolOutcome
from undivided.workers.tools.builtin import BUILT_IN
from undivided.workers.tools.heartbeat import HEARTBEATS
from undivided.workers.tools.mailbox import COMPLETE_DELIBERATION, MAILBOX
from undivided.workers.tools.memory import MEMORY
from undivided.workers.tools.people import PEOPLE
from undivided.workers.tools.testing import EFFECTS, FAMILIES, TEST_TOOLS
from undivided.workers.tools.time import TIME
from undivided.workers.tools.tool import EVERYWHERE, Tool, ToolContext


class Tools:
    """Every tool of this process by name; test tools only if `test_tools`.

    `more` are those that need something of the process, or its consent.
    """

    def __init__(self, test_tools: bool, more: Iterable[Tool] = ()) -> None:
        tests_too = TEST_TOOLS if test_tools else ()
        ours = (*BUILT_IN, *PEOPLE, *MAILBOX, *MEMORY, *HEARTBEATS, *TIME)
        registered = (*ours, *tests_too, *more)
        self._tools = {tool.name: tool for tool in registered}

    def for_context(self, context: str, allowed: tuple[str, ...] | None) -> tuple[Tool, ...]:
        """The tools a request of scenario `context` offers, of those `allowed` (None: all).

        A deliberation has only what is meant for one, whatever a tool says of itself.
        """
        return tuple(
            tool
            for tool in self._tools.values()
            if context in tool.contexts
            and (allowed is None or tool.name in allowed or tool is COMPLETE_DELIBERATION)
            and (context != DELIBERATION or tool.name in DELIBERATION_TOOLS)
        )

    def resolve(
        self, name: str, args: dict[str, Any], offered: tuple[Tool, ...] | None = None
    ) -> Tool:
        """The tool that a call means, with the effect that this call has.

        A name that is not there, or not among the `offered` tools, resolves to a pure tool
        whose outcome tells the model so: a call always has a tool, and so a result.
        """
        there = self._tools if offered is None else {tool.name: tool for tool in offered}
        tool = there.get(name)
        if tool is None:
            return _absent(name, tuple(there))
        effect = args.get("effect")
        variants = FAMILIES.get(name, {})
        if effect not in EFFECTS or effect not in variants:
            return tool
        variant = variants[effect]
        return msgspec.structs.replace(tool, effect=variant.effect, run=variant.run)


def _absent(name: str, there: tuple[str, ...]) -> Tool:
    async def run(_context: ToolContext, _args: dict[str, Any]) -> ToolOutcome:
        return Raised(f"there is no tool {name!r} here; there are {', '.join(there) or 'none'}")

    return Tool(name, "", {"type": "object"}, "pure", "cancel_safe", EVERYWHERE, run)
