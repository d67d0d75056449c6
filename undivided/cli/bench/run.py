"""One run of the benchmark: servers up, each group of rows in turn, servers gone."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from undivided.cli.bench.groups import group
from undivided.cli.bench.measuring import Bench
from undivided.cli.bench.rows import Row
from undivided.cli.bench.servers import bench_servers
from undivided.store.database import Database

POOL = 4


async def run(
    names: Sequence[str], quick: bool, tell: Callable[[str], None], done: Callable[[], None]
) -> list[Row]:
    """Measure the named groups; `tell` hears what is being done, `done` that a group is over."""
    rows: list[Row] = []
    async with bench_servers() as servers:
        database = Database(servers.settings.database_url, POOL, "undivided-bench")
        await database.open()
        try:
            bench = Bench(servers=servers, database=database, quick=quick, tell=tell)
            for name in names:
                rows += await group(name)(bench)
                done()
        finally:
            await database.close()
    return rows
