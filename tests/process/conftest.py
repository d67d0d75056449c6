"""A crew of real workers for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.process.crew import Crew, crew_on
from undivided.store.settings import Settings


@pytest.fixture
async def crew(settings: Settings, tmp_path: Path) -> AsyncIterator[Crew]:
    """Nobody is hired yet; the log is checked when the test has gone well."""
    async with crew_on(settings, tmp_path) as one:
        yield one
