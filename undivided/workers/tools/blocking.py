"""Tools that block: each call has a thread of its own.

A system call cannot be broken off. In a shared pool, calls that never return would use up the
threads one by one, until nothing in the process that needs one works any more. Here a stuck call
costs its own thread, and does not keep the process from leaving either.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import Any

from undivided.domain.tooling import ToolOutcome
from undivided.workers.tools.tool import Run, ToolContext

Blocks = Callable[[ToolContext, dict[str, Any]], ToolOutcome]
_Result = tuple[ToolOutcome | None, BaseException | None]


def blocking(function: Blocks) -> Run:
    """A tool's run function of one that blocks: never in the event loop, never in its pool."""

    async def run(context: ToolContext, args: dict[str, Any]) -> ToolOutcome:
        outcome, error = await _in_its_own_thread(function, context, args)
        if outcome is None:
            raise error or RuntimeError("the tool answered nothing")
        return outcome

    return run


async def _in_its_own_thread(
    function: Blocks, context: ToolContext, args: dict[str, Any]
) -> _Result:
    loop = asyncio.get_running_loop()
    answered: asyncio.Future[_Result] = loop.create_future()

    def tell(result: _Result) -> None:
        if not answered.done():  # else it was broken off, and nobody listens any more
            answered.set_result(result)

    def work() -> None:
        result: _Result
        try:
            result = function(context, args), None
        except BaseException as error:  # noqa: BLE001 - it is raised again where it is awaited
            result = None, error
        with contextlib.suppress(RuntimeError):  # the loop is closed: the process is leaving
            loop.call_soon_threadsafe(tell, result)

    threading.Thread(target=work, name=f"tool {context.call_id}", daemon=True).start()
    return await answered
