"""Following what becomes of one item, live: for whoever asked something and waits for the reply.

Two sources meet here. The log tells what is durable: the pick, each response, each tool call, the
end. Hints tell the pieces of a response while it is written; they may be lost, and what was lost
is made up when the response is recorded. Without Redis there are no pieces and a look once a
second. Nothing is held between two looks.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress
from typing import Any

import msgspec
from msgspec import Struct

from undivided.domain.attention import chat_session
from undivided.domain.coordinates import Coordinate
from undivided.domain.errors import Unavailable
from undivided.domain.recorded import agent_stream, session_stream
from undivided.store.database import Database
from undivided.store.following import POLL_S, Patience
from undivided.store.hints import TAIL, Gap, Hints, Subscription, deltas_of
from undivided.store.tail import Logged, Wanted, read_tail

_AT = """
SELECT coalesce(e.data->>'item_id', t.item_ids->>0), coalesce(t.session_id, i.session_id), t.id,
       e.type IN ('turn.ended', 'item.cancelled', 'item.merged')
  FROM events e
  LEFT JOIN turns t ON t.tenant = e.tenant AND t.id = e.data->>'turn_id'
  LEFT JOIN items i ON i.tenant = e.tenant AND i.id = e.data->>'item_id'
 WHERE e.tenant = %s AND e.txid = %s AND e.position = %s
   AND coalesce(t.agent_id, i.agent_id) = %s"""


class Followed(Struct, frozen=True):
    """Whose item, which, in which session it is expected, and behind which coordinate."""

    agent_id: str
    item_id: str
    session_id: str
    after: Coordinate
    turn_id: str | None = None
    """The turn at work on it, where one is known already."""


class Step(Struct, frozen=True):
    """Something durable about the item or its turn."""

    event: Logged
    data: dict[str, Any]


class Piece(Struct, frozen=True):
    """The next piece of a response that is being written."""

    turn_id: str
    step: int
    text: str


class Quiet(Struct, frozen=True):
    """Nothing happened for a second."""


async def item_followed(database: Database, agent_id: str, place: Coordinate) -> Followed | None:
    """The item that the event at a coordinate is about, to be followed from there on.

    An event that ended it is told once more, so that no reader waits for what was.
    """
    async with database.connection() as connection:
        cursor = await connection.execute(
            _AT, (database.tenant, place.txid, place.position, agent_id)
        )
        row = await cursor.fetchone()
    if row is None or row[0] is None:
        return None
    item_id, session_id, turn_id, over = row
    after = Coordinate(place.txid, place.position - 1) if over else place
    return Followed(agent_id, item_id, session_id or chat_session(agent_id), after, turn_id)


Happened = Step | Piece | Quiet


async def follow_item(
    database: Database, hints: Hints, item: Followed, leaving: asyncio.Event
) -> AsyncIterator[Happened]:
    """Everything about an item in order, until `leaving` is set.

    Whoever follows stops when the item is over.
    """
    listener = _Listener(hints)
    async with AsyncExitStack() as stack:
        await listener.begin(stack, item)
        after, turn_id = item.after, item.turn_id
        sessions, patience = {item.session_id}, Patience()
        while not leaving.is_set():
            for piece in listener.pieces():
                yield piece
            streams = [agent_stream(item.agent_id), *map(session_stream, sorted(sessions))]
            try:
                page = await read_tail(database, after, Wanted(streams=streams))
            except Unavailable:
                await asyncio.sleep(POLL_S)
                yield Quiet()
                continue
            after = page.end
            for event in page.events:
                step = Step(event, event.plain_data())
                if not _concerns(step, item.item_id, turn_id):
                    continue
                if event.type == "item.picked":
                    turn_id = str(step.data["turn_id"])
                    await listener.hear_turn(stack, turn_id)
                    if step.data["session_id"] not in sessions:
                        sessions.add(str(step.data["session_id"]))
                        after = event.coordinate
                        yield step
                        break
                yield step
            else:
                if page.events:
                    patience = Patience()
                pause_s = patience.pause_s(page.in_flight)
                if not page.full and not await listener.news(pause_s) and pause_s == POLL_S:
                    yield Quiet()


class _Listener:
    """Hears of commits about the agent, and of the pieces of its turn."""

    def __init__(self, hints: Hints) -> None:
        self._hints = hints
        self._commits: Subscription | None = None
        self._pieces: Subscription | None = None
        self._turn_id = ""
        self._waiting: list[Piece] = []

    async def begin(self, stack: AsyncExitStack, item: Followed) -> None:
        only = item.agent_id.encode()
        self._commits = await stack.enter_async_context(self._hints.subscribe(TAIL, only))
        if item.turn_id is not None:
            await self.hear_turn(stack, item.turn_id)

    async def hear_turn(self, stack: AsyncExitStack, turn_id: str) -> None:
        self._turn_id = turn_id
        topic = self._hints.subscribe(deltas_of(turn_id))
        self._pieces = await stack.enter_async_context(topic)

    def pieces(self) -> list[Piece]:
        heard, self._waiting = self._waiting, []
        return heard

    async def news(self, within_s: float) -> bool:
        """Wait for a piece or a commit; whether either came."""
        sources = [s for s in (self._commits, self._pieces) if s is not None]
        asked = [asyncio.create_task(source.next(within_s)) for source in sources]
        try:
            await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in asked:
                task.cancel()
            heard = await asyncio.gather(*asked, return_exceptions=True)
        told = [one for one in heard if isinstance(one, bytes | Gap)]
        if self._pieces is not None and len(heard) > 1:
            self._note(heard[1])
            while isinstance(more := await self._pieces.next(0), bytes):
                self._note(more)
        return bool(told)

    def _note(self, heard: object) -> None:
        if not isinstance(heard, bytes):
            return
        with suppress(msgspec.DecodeError, KeyError, TypeError):
            told = msgspec.json.decode(heard)
            self._waiting.append(Piece(self._turn_id, int(told["step"]), str(told["text"])))


def _concerns(step: Step, item_id: str, turn_id: str | None) -> bool:
    data = step.data
    return data.get("item_id") == item_id or (
        turn_id is not None and data.get("turn_id") == turn_id
    )
