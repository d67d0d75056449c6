"""One run of the benchmark: servers up, each group of rows in turn, servers gone."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from undivided.cli.bench.groups import group
from undivided.cli.bench.measuring import Bench
from undivided.cli.bench.rows import Row
from undivided.cli.bench.servers import bench_servers, on_fresh_database


async def run(
    names: Sequence[str], quick: bool, tell: Callable[[str], None], done: Callable[[], None]
) -> list[Row]:
    """Measure the named groups; `tell` hears what is being done, `done` that a group is over."""
    rows: list[Row] = []
    async with bench_servers() as servers:
        for name in names:
            fresh = await on_fresh_database(servers, f"bench_{name}")
            rows += await _measured(name, Bench(fresh, quick, tell))
            done()
    return rows


async def _measured(name: str, bench: Bench) -> list[Row]:
    await bench.database.open()
    try:
        return await group(name)(bench)
    finally:
        await bench.database.close()
