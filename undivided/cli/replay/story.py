"""What is replayed: the events of an agent and its sessions, or of one session, in order.

They come from the service where one answers, and from the database itself where none does.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from undivided.cli.client import Client, Problem, Unreachable, connect
from undivided.cli.surroundings import surroundings
from undivided.domain.coordinates import Coordinate
from undivided.domain.errors import Invalid, NotFound
from undivided.domain.placed import Placed
from undivided.domain.recorded import agent_stream, session_stream
from undivided.store.database import Database
from undivided.store.event_lines import placed, told
from undivided.store.exporting import subject_of
from undivided.store.horizon import resolve
from undivided.store.settings import SettingsMistake, load_settings
from undivided.store.tail import Wanted, read_tail

Kind = Literal["agent", "session"]


class Story(Struct, frozen=True):
    """Every event about one agent or one session, up to where it was asked for."""

    kind: Kind
    id: str
    events: tuple[Placed, ...]


class Asked(Struct, frozen=True, kw_only=True):
    """What to replay, and where it may be found."""

    name: str
    url: str | None
    data: Path


async def load_story(asked: Asked, at: str | None) -> Story:
    """The story as it was told by `at` (a coordinate or a time; None: by now).

    Raises:
        NotFound: there is no agent and no session of that name.
        Unreachable: neither a service nor a database answers.
        Problem, Invalid: the service or the database refuses `at`.
    """
    try:
        async with connect(asked.url) as client:
            return await _from_service(client, asked.name, at)
    except Unreachable:
        if asked.url is not None:
            raise
        try:
            settings = load_settings(surroundings(os.environ, asked.data))
        except SettingsMistake:
            settings = None
        if settings is None:
            raise
    database = Database(settings.database_url, size=2, name="undivided replay")
    await database.open()
    try:
        return await _from_database(database, asked.name, at)
    finally:
        await database.close()


async def _from_service(client: Client, name: str, at: str | None) -> Story:
    kind: Kind = "agent"
    streams = [agent_stream(name)]
    if not await _any(client, streams[0]):
        kind, streams = "session", [session_stream(name)]
        if not await _any(client, streams[0]):
            raise NotFound(f"there is no agent and no session {name[:128]}")
    else:
        sessions = client.pages("/sessions", agentId=name)
        streams += [session_stream(session["id"]) async for session in sessions]
    events = [one async for one in _events(client, streams, at)]
    events.sort(key=lambda one: one.coordinate)
    return Story(kind, name, tuple(events))


async def _any(client: Client, stream: str) -> bool:
    try:
        page = await client.get("/events", stream=stream, limit=1)
    except Problem as error:
        if error.status in (404, 422):
            return False
        raise
    return bool(page["items"])


async def _events(client: Client, streams: list[str], at: str | None) -> AsyncIterator[Placed]:
    for stream in streams:
        async for value in client.pages("/events", stream=stream, at=at):
            if (one := _known(value)) is not None:
                yield one


async def _from_database(database: Database, name: str, at: str | None) -> Story:
    subject = await subject_of(database, name)
    own = tuple(stream for stream in subject.streams if not stream.startswith("user:"))
    streams = own if subject.kind == "agent" else (session_stream(name),)
    wanted = Wanted(streams=streams)
    if at is not None:
        wanted = Wanted(streams=streams, until=await resolve(database, at))
    events: list[Placed] = []
    after, full = Coordinate(0, 0), True
    while full:
        page = await read_tail(database, after, wanted)
        events += [one for told_ in page.events if (one := _known(told(told_))) is not None]
        after, full = page.end, page.full
    return Story(subject.kind, name, tuple(events))


def _known(value: dict[str, Any]) -> Placed | None:
    """The event, unless a newer release wrote it: what is not known here changes nothing here."""
    try:
        return placed(value)
    except Invalid as error:
        if error.field == "type":
            return None
        raise
