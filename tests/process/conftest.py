"""Crews of real workers: one for a single test, and one at work for all tests of a module."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.process.crew import Crew, crew_on
from tests.support.servers import Servers, fresh_database, settings_for
from undivided.store.settings import Settings


@pytest.fixture
async def crew(settings: Settings, tmp_path: Path) -> AsyncIterator[Crew]:
    """Nobody is hired yet; the log is checked when the test has gone well."""
    async with crew_on(settings, tmp_path) as one:
        yield one


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def at_work(
    servers: Servers, template: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Crew]:
    """A worker for a whole module: each test has agents of its own, and nobody is killed."""
    with fresh_database(servers, template) as database:
        settings = settings_for(servers, database.name)
        async with crew_on(settings, tmp_path_factory.mktemp("crew")) as one:
            one.hire()
            yield one
