"""Real servers, a fresh database per test, and a whole service for those who need one."""

from __future__ import annotations

import ipaddress
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from tests.support.servers import (
    Database,
    Servers,
    fresh_database,
    make_template,
    running_servers,
    settings_for,
)
from tests.support.stack import Stack
from undivided.store.settings import Settings


def _refuse_outside(event: str, arguments: tuple[Any, ...]) -> None:
    """Let no test reach beyond this machine, least of all a real model."""
    if event != "socket.connect" or not isinstance(address := arguments[1], tuple):
        return
    host = str(address[0])
    if host != "localhost" and not ipaddress.ip_address(host).is_loopback:
        raise ConnectionRefusedError(f"tests stay on this machine, and {host} is not on it")


sys.addaudithook(_refuse_outside)


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """Postgres and Valkey of this test process."""
    with running_servers(tmp_path_factory.mktemp("servers")) as running:
        yield running


@pytest.fixture(scope="session")
def template(servers: Servers) -> str:
    """The migrated database that every test's own is a copy of."""
    return make_template(servers)


@pytest.fixture
def database(servers: Servers, template: str) -> Iterator[Database]:
    """A fresh, migrated, empty database."""
    with fresh_database(servers, template) as fresh:
        yield fresh


@pytest.fixture
def settings(servers: Servers, database: Database) -> Settings:
    """Settings for that database, with Redis keys of its own and the test tools on."""
    return settings_for(servers, database.name)


@pytest.fixture
async def stack(
    settings: Settings, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Stack]:
    """An API, two workers and a clock as child processes, ready to serve."""
    running = Stack(settings, tmp_path_factory.mktemp("stack"))
    try:
        for kind in ("api", "worker", "worker", "clock"):
            running.start(kind)
        await running.ready()
        yield running
    finally:
        running.stop()
