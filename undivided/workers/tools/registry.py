"""Which tools there are, who may see them, and which one a call means."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from undivided.domain.tooling import Raised, ToolOutcome
from undivided.workers.tools.builtin import BUILT_IN
from undivided.workers.tools.people import PEOPLE
from undivided.workers.tools.testing import EFFECTS, FAMILIES, TEST_TOOLS
from undivided.workers.tools.tool import EVERYWHERE, Tool, ToolContext


class Tools:
    """Every tool of this process by name; test tools only if `test_tools`."""

    def __init__(self, test_tools: bool, more: Iterable[Tool] = ()) -> None:
        registered = (*BUILT_IN, *PEOPLE, *(TEST_TOOLS if test_tools else ()), *more)
        self._tools = {tool.name: tool for tool in registered}

    def for_context(self, context: str, allowed: tuple[str, ...] | None) -> tuple[Tool, ...]:
        """The tools a request of scenario `context` offers, of those `allowed` (None: all)."""
        return tuple(
            tool
            for tool in self._tools.values()
            if context in tool.contexts and (allowed is None or tool.name in allowed)
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
