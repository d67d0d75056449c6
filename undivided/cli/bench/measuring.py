"""How things are measured: in turns, ours and theirs, and by the median.

A machine has moods, and other work comes and goes. So sides take turns within one run, each
round in the opposite order of the one before, and a first round that only warms up is thrown
away. The medians of the rounds are compared.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from statistics import median

from undivided.cli.bench.servers import Servers
from undivided.store.database import Database
from undivided.store.log import Log

POOL = 4

Side = Callable[[], Awaitable[float]]
"""Does its work once and answers its figure."""


class Bench:
    """What a group of rows works with; its database holds nothing yet.

    `quick` trades exactness for time; `tell` says what is being done, for the progress bar.
    """

    def __init__(self, servers: Servers, quick: bool, tell: Callable[[str], None]) -> None:
        self.servers, self.quick, self.tell = servers, quick, tell
        self.database = Database(servers.settings.database_url, POOL, "undivided-bench")
        self.log = Log(self.database)

    @property
    def rounds(self) -> int:
        """How many rounds count."""
        return 3 if self.quick else 5

    def of(self, whole: int, quick: int) -> int:
        """How much work, for this kind of run."""
        return quick if self.quick else whole


async def in_turns(rounds: int, *sides: Side) -> list[float]:
    """The median figure of each side over `rounds` rounds, after one that warms up."""
    figures: list[list[float]] = [[] for _ in sides]
    order = list(enumerate(sides))
    for number in range(rounds + 1):
        for index, side in order:
            value = await side()
            if number:
                figures[index].append(value)
        order.reverse()
    return [median(values) for values in figures]


async def rate(times: int, work: Callable[[int], Awaitable[object]]) -> float:
    """How often per second `work` can be done, one after another; it is told the number."""
    began = time.perf_counter()
    for number in range(times):
        await work(number)
    return times / (time.perf_counter() - began)


def percentile(values: Sequence[float], percent: float) -> float:
    """The value that `percent` of `values` do not exceed, by the nearest rank."""
    ordered = sorted(values)
    rank = max(1, -(-len(ordered) * percent // 100))
    return ordered[int(rank) - 1]
