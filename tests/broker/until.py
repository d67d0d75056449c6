"""Waiting for what is true in the end, with a deadline instead of a guess."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


async def until(condition: Callable[[], bool], within_s: float = 10.0) -> None:
    """Return once `condition` holds; fail when it does not within `within_s` seconds."""
    async with asyncio.timeout(within_s):
        while not condition():
            await asyncio.sleep(0.01)
