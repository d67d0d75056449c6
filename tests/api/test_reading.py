"""Mind, mailbox, decisions, activities: now, in pages, and as they were at any coordinate."""

from __future__ import annotations

from typing import Any

import httpx
import psycopg

from tests.api import turns
from tests.api.calls import Api
from tests.support.servers import Database
from undivided.domain.agents import note
from undivided.domain.outcomes import Failed
from undivided.domain.recorded import Meta
from undivided.domain.waits import Sleep
from undivided.store import landing
from undivided.store.log import Log

VIEWS = (
    "/agents/ada",
    "/agents/ada/mind",
    "/agents/ada/mailbox",
    "/agents/ada/mailbox?status=completed",
    "/agents/ada/mailbox?status=queued,processing&limit=2",
    "/agents/ada/mailbox?type=human_chat&offset=1",
    "/agents/ada/decisions",
    "/agents/ada/activities",
    "/sessions?agentId=ada",
    "/sessions/ses_ada/messages",
    "/agents",
)


async def remember(log: Log, agent_id: str, key: str, content: str) -> None:
    async with log.locked(agent_id) as tx:
        await tx.append([tx.addition(note(tx.agent, (), (key, content), None))], Meta())


async def test_148_a_mind_shows_focus_queue_decisions_and_memory(api: Api, log: Log) -> None:
    await api.agent("ada")
    first = await api.chat("ada", "one " + "x" * 1000)
    await api.chat("ada", "two", priority=3)
    await api.chat("ada", "\x00" * 700)
    await remember(log, "ada", "plan", "be quick\x00")
    idle = await api.get("/agents/ada/mind")
    assert (idle["attentionState"], idle["currentFocus"], idle["mailboxDepth"]) == ("idle", None, 3)
    assert "flight" not in idle
    flight = await turns.begin(log, "ada")
    mind = await api.get("/agents/ada/mind")
    assert mind["attentionState"] == "focused"
    focus = mind["currentFocus"]
    assert (focus["mailboxItemId"], focus["type"]) == (first["itemId"], "human_chat")
    assert (focus["turnId"], focus["label"]) == (flight.turn.id, "Chat")
    assert [i["summary"] for i in mind["queuedItems"]] == ["\x00" * 100, "two"]
    assert mind["deferredItems"] == []
    assert mind["lastTriage"] is None
    assert mind["workingMemory"][0]["content"] == "be quick\x00"
    assert mind["recentDecisions"][-1]["rule"] == "priority_fifo"
    assert mind["flight"] == {"epoch": 1, "worker": turns.WORKER}


async def test_a_suspended_turn_is_seen(api: Api, log: Log) -> None:
    await api.agent("ada")
    await api.chat("ada", "sleep")
    flight = await turns.begin(log, "ada")
    await landing.suspend(log, flight, "call_1", Sleep(60))
    mind = await api.get("/agents/ada/mind")
    assert mind["attentionState"] == "suspended"
    assert mind["suspension"]["kind"] == "sleep"
    assert mind["suspension"]["callId"] == "call_1"
    assert mind["suspension"]["until"] > mind["suspension"]["since"]
    assert "flight" not in mind
    assert await api.get("/agents/ada/mind", at=mind["position"]) == mind


async def test_a_mailbox_tells_what_became_of_everything(api: Api, log: Log) -> None:
    await api.agent("ada")
    done = await api.chat("ada", "one")
    await turns.whole_turn(log, "ada", "yes")
    lost = await api.chat("ada", "two")
    flight = await turns.begin(log, "ada")
    await turns.finish(log, flight, "", Failed("refused", "no", retryable=False))
    waits = await api.post(
        "/agents/ada/mailbox", {"sourceType": "heartbeat", "payload": {"content": "tick"}}
    )
    box = await api.get("/agents/ada/mailbox")
    assert box["queueDepth"] == 1
    assert [i["id"] for i in box["queued"]] == [waits["itemId"]]
    history = {i["id"]: i for i in box["history"]}
    assert list(history) == [waits["itemId"], lost["itemId"], done["itemId"]]
    assert history[waits["itemId"]]["status"] == "queued"
    assert history[waits["itemId"]]["activity"] is None
    one = history[done["itemId"]]
    assert one["status"] == "completed"
    assert one["startedAt"] <= one["completedAt"]
    assert [d["decisionType"] for d in one["decisions"]] == ["pick", "complete"]
    assert one["activity"]["success"] is True
    assert one["attempts"] == 1
    assert history[lost["itemId"]]["status"] == "dead_letter"
    assert history[lost["itemId"]]["activity"]["success"] is False
    assert box["statusCounts"] == {"completed": 1, "dead_letter": 1, "queued": 1}
    for query, found in (
        ("type=heartbeat", [waits]),
        ("category=interaction", [lost, done]),
        ("status=completed,dead_letter", [lost, done]),
        ("type=heartbeat,human_chat&category=task", [waits, lost, done]),
        ("offset=1&limit=1", [lost]),
    ):
        page = await api.get(f"/agents/ada/mailbox?{query}")
        assert [i["id"] for i in page["history"]] == [f["itemId"] for f in found], query


async def test_decisions_say_rule_inputs_and_losers(api: Api, log: Log) -> None:
    await api.agent("ada")
    await api.chat("ada", "one")
    other = await api.chat("ada", "two")
    await turns.whole_turn(log, "ada", "yes")
    page = await api.get("/agents/ada/decisions")
    assert [d["decisionType"] for d in page["items"]] == ["complete", "pick", "complete", "pick"]
    pick = page["items"][-1]
    assert pick["rule"] == "priority_fifo"
    assert pick["losers"] == [other["itemId"]]
    assert pick["context"]["waiting"] == 2
    assert pick["policyVersion"] == 1
    event = (await api.get("/events", type="item.picked"))["items"][0]
    assert pick["position"] == event["position"]


async def test_an_activity_has_its_steps(api: Api, log: Log) -> None:
    await api.agent("ada")
    await api.chat("ada", "one")
    flight = await turns.begin(log, "ada")
    await turns.use_tool(log, flight, "look", "a bird")
    await turns.finish(log, flight, "a bird")
    activity = (await api.get("/agents/ada/activities"))["items"][0]
    assert activity["id"] == flight.turn.id
    assert activity["outcome"] == "completed"
    path = f"/agents/ada/activity-logs?activityId={activity['id']}"
    told = await api.get(path)
    assert told["activity"] == activity
    assert [(step["type"], step["content"]) for step in told["items"]] == [
        ("turn.started", "one"),
        ("model.responded", "let me see"),
        ("tool_call.started", "look"),
        ("tool_call.finished", "a bird"),
        ("model.responded", "a bird"),
        ("turn.ended", ""),
    ]
    first = await api.get(f"{path}&limit=4")
    rest = await api.get(f"{path}&limit=4&cursor={first['nextCursor']}")
    assert first["items"] + rest["items"] == told["items"]
    await api.get("/agents/ada/activity-logs", 404, activityId="trn_none")


async def test_a_page_of_large_contents_is_bounded_in_bytes(api: Api, log: Log) -> None:
    """Whatever `limit` says; the pages together still hold everything once."""
    await api.agent("ada")
    accepted = await api.chat("ada", "one")
    flight = await turns.begin(log, "ada")
    for _ in range(12):
        await turns.use_tool(log, flight, "look", "x" * 900_000)
    await turns.finish(log, flight, "seen")
    [event] = (await api.get("/events", type="item.accepted"))["items"]
    assert event["data"]["itemId"] == accepted["itemId"]
    for path, total in (
        ("/sessions/ses_ada/messages", 26),
        (f"/agents/ada/activity-logs?activityId={flight.turn.id}", 39),
        (f"/events/{event['id']}/effects", 44),
    ):
        ids: list[str] = []
        cursor: str | None = ""
        while cursor is not None:
            more = {"cursor": cursor} if cursor else {}
            query = httpx.QueryParams(path.partition("?")[2]).merge({"limit": 500, **more})
            answer = await api.client.get(f"/api{path.partition('?')[0]}", params=query)
            assert len(answer.content) < 9 * 1024 * 1024  # a log tells a content twice
            ids += [one["id"] for one in answer.json()["items"]]
            cursor = answer.json()["nextCursor"]
        assert (len(ids), len(set(ids))) == (total, total)


async def test_lists_come_in_pages(api: Api, log: Log) -> None:
    for n in range(7):
        await api.agent(f"agent-{n}")
        await api.chat("agent-0", f"message {n}")
    await turns.whole_turn(log, "agent-0", "yes")
    for path, key, total in (
        ("/agents", "items", 7),
        ("/agents/agent-0/mailbox", "history", 7),
        ("/agents/agent-0/decisions", "items", 14),
        ("/agents/agent-0/activities", "items", 7),
        ("/events", "items", 0),
    ):
        whole = (await api.get(path, limit=500))[key]
        found: list[Any] = []
        cursor: dict[str, Any] = {}
        while True:
            page = await api.get(path, limit=3, **cursor)
            assert len(page[key]) <= 3
            found += page[key]
            if page["nextCursor"] is None:
                break
            cursor = {"cursor": page["nextCursor"]}
        assert found == whole, path
        assert total in {0, len(whole)}


async def test_every_view_is_the_same_again_at_its_coordinate(
    api: Api, log: Log, database: Database
) -> None:
    """What was answered at each moment is answered later with `at=`, snapshots or not."""
    remembered: list[tuple[str, str, Any]] = []

    async def look() -> None:
        position = (await api.get("/agents/ada/mind"))["position"]
        for path in VIEWS:
            if "ses_ada" in path and not remembered:
                continue
            answer = await api.client.get(f"/api{path}")
            remembered.append((path, position, answer.json() if answer.is_success else None))

    await api.agent("ada")
    await look()
    for n in range(4):
        await api.chat("ada", f"message {n}")
        await api.post(
            "/agents/ada/mailbox", {"sourceType": "heartbeat", "payload": {"content": "."}}
        )
        await look()
    flight = await turns.begin(log, "ada")
    await look()
    await turns.use_tool(log, flight, "look", "a bird")
    await remember(log, "ada", "seen", "bird")
    await look()
    await turns.finish(log, flight, "a bird")
    await look()
    changed = await api.client.patch("/api/agents/ada", json={"policy": {"itemMaxRetries": 9}})
    assert changed.json()["policyVersion"] == 2
    await look()
    await api.post("/agents/ada/pause", status=200)
    await look()

    for again in range(2):
        for path, position, then in remembered:
            joined = "&" if "?" in path else "?"
            answer = await api.client.get(f"/api{path}{joined}at={position}")
            if then is None:
                assert answer.status_code == 404
            else:
                same(answer.json(), then, position, f"{path} at {position}")
        with psycopg.connect(database.owner_url, autocommit=True) as connection:
            connection.execute("DELETE FROM snapshots")
        assert again < 2


def same(found: Any, then: Any, position: str, where: str) -> None:
    """Equal but for the coordinate up to which a list has seen."""
    if "position" in found and found["position"] == position:
        found = {**found, "position": None}
        then = {**then, "position": None}
    assert found == then, where


async def test_a_time_means_the_last_coordinate_up_to_it(api: Api) -> None:
    before = await api.agent("ada")
    again = await api.get("/agents/ada", at=before["createdAt"].replace("Z", "999+00:00"))
    assert again == before
    await api.get("/agents/ada", 404, at="2020-01-01T00:00:00Z")


async def test_before_everything_there_is_nothing(api: Api) -> None:
    await api.agent("ada")
    accepted = await api.chat("ada", "x")
    await api.get("/agents/ada", 404, at="0-0")
    await api.get("/agents/ada/mind", 404, at="0-0")
    await api.get("/agents/ada/mailbox", 404, at="0-0")
    await api.get("/agents/ada/decisions", 404, at="0-0")
    await api.get(f"/items/{accepted['itemId']}", 404, at="0-0")
    assert (await api.get("/agents", at="0-0"))["items"] == []
    assert (await api.get("/events", at="0-0"))["items"] == []


async def test_an_item_is_seen_as_it_was(api: Api, log: Log) -> None:
    await api.agent("ada")
    accepted = await api.chat("ada", "one\ud800")
    path = f"/items/{accepted['itemId']}"
    story = [await api.get(path)]
    flight = await turns.begin(log, "ada")
    story.append(await api.get(path))
    await turns.finish(log, flight, "yes")
    story.append(await api.get(path))
    assert [item["status"] for item in story] == ["queued", "processing", "completed"]
    assert story[2]["outcome"] == "completed"
    assert story[2]["sessionId"] == "ses_ada"
    for item in story:
        assert await api.get(path, at=item["position"]) == item


async def test_own_writes_are_seen(api: Api) -> None:
    await api.agent("ada")
    for n in range(5):
        accepted = await api.chat("ada", str(n))
        position = accepted["position"]
        box = await api.get("/agents/ada/mailbox", minPosition=position)
        assert box["queueDepth"] == n + 1
        assert box["position"] == position
        then = await api.get("/agents/ada/mailbox", at=position)
        assert then == box


async def test_long_streams_leave_snapshots_that_change_nothing(
    api: Api, database: Database
) -> None:
    """Deleting every snapshot changes nothing but time."""
    await api.agent("ada")
    items = [{"sourceType": "daily_report", "payload": {"content": str(n)}} for n in range(900)]
    places = []
    for _ in range(3):
        await api.post("/agents/ada/mailbox:batch", {"items": items})
        places.append((await api.chat("ada", "mark"))["position"])
    first = [await api.get("/agents/ada/mailbox", at=place) for place in places]
    again = [await api.get("/agents/ada/mailbox", at=place) for place in places]
    with psycopg.connect(database.owner_url, autocommit=True) as connection:
        deleted = connection.execute("DELETE FROM snapshots").rowcount
    without = [await api.get("/agents/ada/mailbox", at=place) for place in places]
    assert deleted > 0
    assert first == again == without
    assert [box["queueDepth"] for box in first] == [901, 1802, 2703]
    assert first[-1] == await api.get("/agents/ada/mailbox")


async def test_what_was_pruned_is_told(api: Api, database: Database) -> None:
    made = await api.agent("ada")
    accepted = await api.chat("ada", "x")
    with psycopg.connect(database.owner_url, autocommit=True) as connection:
        connection.execute("ALTER TABLE events DISABLE TRIGGER USER")
        connection.execute("DELETE FROM events WHERE version = 1")
    told = await api.get("/agents/ada", 422, at=accepted["position"])
    assert told["code"] == "position_pruned"
    assert made["position"] != accepted["position"]
