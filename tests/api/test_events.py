"""The log over HTTP: in one order, without gap or repeat, whoever writes meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import psycopg
import pytest

from tests.api import turns
from tests.api.calls import Api
from tests.api.frames import Frame, frames_of, next_frame
from tests.support.servers import Database
from undivided.api.parts import Parts
from undivided.domain.coordinates import ORIGIN, Coordinate, parse_coordinate
from undivided.domain.events.items import Payload
from undivided.domain.mailbox import Accept, accept
from undivided.domain.recorded import Meta
from undivided.store.log import Log
from undivided.store.tail import Wanted, read_tail


class Turnstile:
    """A place where a transaction waits until it is told whether to write."""

    def __init__(self, let_through: bool, opened: bool = False) -> None:
        self.let_through = let_through
        self.reached, self.opened = asyncio.Event(), asyncio.Event()
        if opened:
            self.opened.set()

    async def wait(self) -> None:
        self.reached.set()
        await self.opened.wait()


OPEN, SHUT = Turnstile(True, opened=True), Turnstile(False, opened=True)


async def accept_one(log: Log, agent_id: str, item_id: str, turnstile: Turnstile = OPEN) -> None:
    """Accept a stimulus, in a transaction that waits at the turnstile before it writes."""
    async with log.locked(agent_id) as tx:
        command = Accept(item_id=item_id, source_type="human_chat", payload=Payload(item_id))
        events = accept(tx.agent, (command,))
        await turnstile.wait()
        if turnstile.let_through:
            await tx.append([tx.addition(*events)], Meta())


INSERT = """
INSERT INTO events (txid, id, stream, version, type, schema, data, meta, recorded_at, bytes)
SELECT pg_current_xact_id()::text::bigint + txid_base, gen_random_uuid(), 'session:' || %s, 1,
       'session.opened', 1, jsonb_build_object('session_id', %s::text, 'agent_id', 'ada'), '{}',
       now(), 9
  FROM log_base"""


@contextmanager
def inserted(database: Database, session_id: str) -> Iterator[psycopg.Connection[Any]]:
    """An event that has its place in the log already, in a transaction that is still open."""
    with psycopg.connect(database.app_url) as connection:
        connection.execute(INSERT.encode(), (session_id, session_id))
        yield connection


async def everything(parts: Parts, rows: int = 500) -> list[Any]:
    found, after = [], ORIGIN
    while True:
        page = await read_tail(parts.database, after, rows=rows)
        found += page.events
        after = page.end
        if not page.full:
            return found


async def test_events_are_told_in_the_order_of_the_log(api: Api, log: Log) -> None:
    await api.agent("ada")
    await api.chat("ada", "hello\x00\ud800")
    await turns.whole_turn(log, "ada", "hi")
    page = await api.get("/events")
    positions = [parse_coordinate(e["position"]) for e in page["items"]]
    assert positions == sorted(positions)
    assert [e["type"] for e in page["items"]][:2] == ["agent.created", "item.accepted"]
    accepted = page["items"][1]
    assert accepted["data"]["payload"]["content"] == "hello\x00\ud800"
    assert accepted["meta"] == {"actor": "user"}
    assert (accepted["stream"], accepted["version"]) == ("agent:ada", 2)
    assert await api.get(f"/events/{accepted['id']}") == accepted
    some = await api.get("/events?type=item.accepted,turn.ended&stream=agent:ada")
    assert [e["type"] for e in some["items"]] == ["item.accepted"]
    rest = await api.get("/events", after=accepted["position"])
    assert rest["items"] == page["items"][2:]


async def test_causes_and_effects_follow_the_story(api: Api, log: Log) -> None:
    await api.agent("ada")
    await api.chat("ada", "hello")
    await turns.whole_turn(log, "ada", "hi")
    events = (await api.get("/events"))["items"]
    accepted = next(e for e in events if e["type"] == "item.accepted")
    ended = next(e for e in events if e["type"] == "turn.ended")
    causes = await api.get(f"/events/{ended['id']}/causes")
    assert [e["id"] for e in causes["items"]] == [accepted["id"]]
    effects = await api.get(f"/events/{accepted['id']}/effects")
    assert ended["id"] in {e["id"] for e in effects["items"]}
    page = await api.get(f"/events/{accepted['id']}/effects", limit=1)
    more = await api.get(f"/events/{accepted['id']}/effects", cursor=page["nextCursor"])
    assert page["items"] + more["items"] == effects["items"]


async def test_data_is_told_in_camel_case_and_what_was_given_as_it_is(api: Api) -> None:
    await api.agent("ada")
    payload = {"content": "hello", "taskId": "t1", "extra": {"my_key": {"their_key": 1}}}
    body = {"sourceType": "human_chat", "payload": payload, "metadata": {"senderName": "Tom"}}
    accepted = await api.post("/agents/ada/mailbox", body)
    (event,) = (await api.get("/events?type=item.accepted"))["items"]
    assert event["data"] == {
        "agentId": "ada", "itemId": accepted["itemId"], "seq": 1, "sourceType": "human_chat",
        "priority": 0, "payload": payload, "sender": {"name": "Tom", "role": "user"},
        "delivery": "queue", "sessionId": None, "heldS": 0.0,
    }  # fmt: skip


async def test_a_turn_that_follows_at_once_has_a_cause_of_its_own(api: Api, log: Log) -> None:
    """The end of one turn and the start of the next are one append, and two stories."""
    await api.agent("ada")
    await api.chat("ada", "one")
    await api.chat("ada", "two")
    await turns.whole_turn(log, "ada", "so")
    events = (await api.get("/events"))["items"]
    items = [e["data"]["itemId"] for e in events if e["type"] == "item.accepted"]
    accepted = {e["data"]["itemId"]: e["id"] for e in events if e["type"] == "item.accepted"}
    caused = [
        (e["type"], e["meta"]["causation"]) for e in events
        if e["type"] in ("item.picked", "turn.started", "turn.ended", "item.completed")
    ]  # fmt: skip
    one, two = (accepted[item] for item in items)
    assert [kind for kind, cause in caused if cause == one] == [
        "item.picked", "turn.started", "item.completed", "turn.ended",
    ]  # fmt: skip
    assert sorted(kind for kind, cause in caused if cause == two) == sorted(
        kind for kind, cause in caused if cause == one
    )


async def test_large_content_is_told_whole(api: Api) -> None:
    await api.agent("ada")
    content = "large \x00 " * 100_000
    accepted = await api.chat("ada", content)
    event = (await api.get("/events", type="item.accepted"))["items"][0]
    assert event["data"]["payload"]["content"] == content
    assert (await api.get(f"/items/{accepted['itemId']}"))["payload"]["content"] == content


async def test_a_page_is_bounded_in_bytes_with_what_it_refers_to(api: Api, parts: Parts) -> None:
    await api.agent("ada")
    for size in (900_000, 10, 10, 900_000, 900_000):
        await api.chat("ada", "x" * size)
    sizes, after = [], ORIGIN
    while True:
        page = await read_tail(parts.database, after, max_bytes=1_000_000)
        sizes.append(len(page.events))
        after = page.end
        if not page.full:
            break
    assert sizes == [4, 1, 1]
    tiny = await read_tail(parts.database, ORIGIN, max_bytes=1)
    assert (len(tiny.events), tiny.full) == (1, True)


async def test_an_event_that_is_not_committed_yet_is_waited_for(
    api: Api, parts: Parts, log: Log, database: Database
) -> None:
    """C14: T1 draws its position and stays open, T2 draws the next and commits."""
    await api.agent("ada")
    before = await everything(parts)
    async with streamed(api, f"/events/stream?after={before[-1].coordinate}") as frames:
        with inserted(database, "early") as connection:
            await accept_one(log, "ada", "mbx_late")
            page = await read_tail(parts.database, before[-1].coordinate)
            assert page.events == []
            assert page.in_flight
            connection.commit()
        assert [(await next_frame(frames)).event for _ in range(2)] == [
            "session.opened",
            "item.accepted",
        ]
    rest = (await read_tail(parts.database, page.end)).events
    assert [event.type for event in rest] == ["session.opened", "item.accepted"]


async def test_an_event_in_flight_is_waited_for(api: Api, parts: Parts, log: Log) -> None:
    """C15: T1 locks first, T2 commits first, for two agents; nothing is skipped."""
    await api.agent("ada")
    await api.agent("bob")
    before = await everything(parts)
    turnstile = Turnstile(let_through=True)
    first = asyncio.create_task(accept_one(log, "ada", "mbx_1", turnstile))
    await turnstile.reached.wait()
    await accept_one(log, "bob", "mbx_2")
    page = await read_tail(parts.database, before[-1].coordinate)
    assert page.events == []
    assert page.in_flight
    turnstile.opened.set()
    await first
    found = [e.plain_data()["item_id"] for e in (await everything(parts))[len(before) :]]
    assert found == ["mbx_1", "mbx_2"]
    rest = [e.plain_data()["item_id"] for e in (await read_tail(parts.database, page.end)).events]
    assert rest == ["mbx_1", "mbx_2"]


async def test_what_was_rolled_back_is_not_waited_for(
    api: Api, parts: Parts, log: Log, database: Database
) -> None:
    """C17: holes in the positions and in the transaction ids stall nobody."""
    await api.agent("ada")
    with psycopg.connect(database.app_url) as connection:
        for n in range(500):
            connection.execute(INSERT.encode(), (f"never-{n}", f"never-{n}"))
            connection.rollback()
    await accept_one(log, "ada", "mbx_never", SHUT)
    await accept_one(log, "ada", "mbx_last")
    found = await everything(parts)
    assert found[-1].plain_data()["item_id"] == "mbx_last"


async def test_an_open_lock_does_not_hold_the_tail(
    api: Api, parts: Parts, database: Database
) -> None:
    """C18: a session that only holds an advisory lock pins nothing."""
    await api.agent("ada")
    with psycopg.connect(database.app_url, autocommit=True) as connection:
        connection.execute("SELECT pg_advisory_lock(1)")
        accepted = await api.chat("ada", "x")
        found = await everything(parts)
        assert str(found[-1].coordinate) == accepted["position"]


@asynccontextmanager
async def streamed(api: Api, path: str, last: str | None = None) -> AsyncIterator[Any]:
    headers = {} if last is None else {"last-event-id": last}
    async with api.stream("GET", path, headers=headers) as answer:
        yield frames_of(answer)


async def test_a_stream_goes_on_live(api: Api) -> None:
    await api.agent("ada")
    async with streamed(api, "/events/stream?after=0-0") as frames:
        first = await next_frame(frames)
        assert first.event == "agent.created"
        accepted = await api.chat("ada", "x")
        frame = await next_frame(frames)
        assert (frame.event, frame.id) == ("item.accepted", accepted["position"])
        assert frame.data["data"]["payload"]["content"] == "x"


async def test_a_stream_without_a_beginning_begins_now(api: Api) -> None:
    await api.agent("ada")
    async with streamed(api, "/events/stream") as frames:
        await api.chat("ada", "x")
        assert (await next_frame(frames)).event == "item.accepted"


async def test_a_stream_has_no_gap_or_repeat_across_reconnects(api: Api, log: Log) -> None:
    """C67: connect and break off again and again while several agents are written to."""
    agents = ["ada", "bob", "cy"]
    for agent_id in agents:
        await api.agent(agent_id)
    total, last = 120, None
    seen: list[Frame] = []

    async def write(agent_id: str) -> None:
        for n in range(total // len(agents)):
            await accept_one(log, agent_id, f"{agent_id}_{n}")

    writing = asyncio.gather(*map(write, agents))
    while len(seen) < total:
        path = "/events/stream?after=0-0&type=item.accepted"
        async with streamed(api, path, last) as frames:
            for _ in range(min(17, total - len(seen))):
                frame: Frame = await next_frame(frames)
                assert frame.id is not None
                seen.append(frame)
                last = frame.id
    await writing
    assert len({frame.id for frame in seen}) == total
    told = (await api.get("/events?type=item.accepted&limit=500"))["items"]
    assert [frame.data for frame in seen] == told


async def test_only_durable_events_have_an_id(api: Api) -> None:
    """C66: a client that breaks off right after a heartbeat loses nothing."""
    await api.agent("ada")
    lines: list[str] = []
    async with api.stream("GET", "/events/stream?after=0-0") as answer:
        async for line in answer.aiter_lines():
            lines.append(line)
            if line.startswith("data:"):
                break
    assert lines[0].startswith(":")
    assert [line.split(":")[0] for line in lines if line] == ["", "id", "event", "data"]


async def test_streams_hold_no_connections(api: Api, parts: Parts) -> None:
    """C39: three times as many streams as connections, and a read is still quick."""
    await api.agent("ada")
    pool = 16
    async with asyncio.TaskGroup() as group:
        heard = asyncio.Semaphore(0)
        done = asyncio.Event()

        async def listen() -> None:
            async with streamed(api, "/events/stream?after=0-0") as frames:
                await next_frame(frames)
                heard.release()
                await done.wait()

        for _ in range(3 * pool):
            group.create_task(listen())
        for _ in range(3 * pool):
            await heard.acquire()
        async with asyncio.timeout(1):
            await api.get("/agents/ada/mind")
        async with asyncio.timeout(5):
            while parts.database.borrowed:
                await asyncio.sleep(0.01)
        done.set()


async def test_a_filtered_tail_does_not_look_twice(api: Api, parts: Parts) -> None:
    await api.agent("ada")
    accepted = await api.chat("ada", "x")
    page = await read_tail(parts.database, ORIGIN, Wanted(types=["turn.ended"]))
    assert page.events == []
    assert page.end > parse_coordinate(accepted["position"])
    assert page.end < Coordinate(parse_coordinate(accepted["position"]).txid + 1000, 0)


@pytest.mark.parametrize("path", ["/events", "/events/stream"])
async def test_strange_streams_are_empty(api: Api, path: str) -> None:
    await api.agent("ada")
    if path == "/events":
        assert (await api.get("/events", stream="agent:nobody"))["items"] == []
    else:
        await api.get("/events/stream", 422, type="\x00")
