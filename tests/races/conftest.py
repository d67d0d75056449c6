"""A log, and a stage to set races on; whatever happened, the log is checked afterwards."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.races.staging import Stage
from tests.support.lives import log_at
from tests.support.servers import Database
from undivided.store.checking import check
from undivided.store.log import Log


@pytest.fixture
async def log(database: Database) -> AsyncIterator[Log]:
    """The log of a fresh database, found sound when the test has gone well."""
    async with log_at(database.app_url) as log:
        yield log
    assert [wrong.finding for wrong in (await check(database.app_url)).wrong] == []


@pytest.fixture
def stage(database: Database) -> Stage:
    """The same database, seen from above."""
    return Stage(database.owner_url)
