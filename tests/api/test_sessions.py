"""Sessions: their state, their transcript, stopping, archiving, deleting."""

from __future__ import annotations

from tests.api import turns
from tests.api.calls import Api
from undivided.store.log import Log


async def test_a_transcript_tells_what_was_said_in_order(api: Api, log: Log) -> None:
    await api.agent("ada")
    await api.chat("ada", "what is up?\ud800\x00")
    flight = await turns.begin(log, "ada")
    await turns.use_tool(log, flight, "look", "a b\x00ird")
    await turns.finish(log, flight, "a bird")
    page = await api.get("/sessions/ses_ada/messages")
    told = [(m["role"], m["content"], m["source"]) for m in page["items"]]
    assert told == [
        ("user", "what is up?\ud800\x00", "human_chat"),
        ("assistant", "let me see", "scripted"),
        ("tool", "a b\x00ird", "look"),
        ("assistant", "a bird", "scripted"),
    ]
    first, asked, looked, _ = page["items"]
    assert asked["toolCalls"] == [{"id": looked["toolCallId"], "tool": "look", "args": {"n": 1}}]
    assert first["turnOrigin"] == "user"
    assert first["visibility"] == "visible"
    assert {m["turnId"] for m in page["items"]} == {flight.turn.id}


async def test_what_only_a_provider_sees_is_hidden(api: Api, log: Log) -> None:
    await api.agent("ada")
    body = {"sourceType": "agent_signal", "payload": {"content": "go on"}, "sessionId": "s1"}
    await api.post("/agents/ada/mailbox", body)
    await turns.whole_turn(log, "ada", "going on")
    visible = await api.get("/sessions/s1/messages")
    assert [m["content"] for m in visible["items"]] == ["going on"]
    everything = await api.get("/sessions/s1/messages", visibility="all")
    assert [m["content"] for m in everything["items"]] == ["go on", "going on"]
    assert everything["items"][0]["turnOrigin"] == "agent_continuation"


async def test_a_transcript_comes_in_pages(api: Api, log: Log) -> None:
    await api.agent("ada")
    for n in range(5):
        await api.chat("ada", f"question {n}")
    await turns.whole_turn(log, "ada", "answer")
    whole = (await api.get("/sessions/ses_ada/messages"))["items"]
    assert len(whole) == 10
    pages, cursor = [], None
    while True:
        query = {"limit": 3} | ({"cursor": cursor} if cursor else {})
        page = await api.get("/sessions/ses_ada/messages", **query)
        pages.append(page["items"])
        cursor = page["nextCursor"]
        if cursor is None:
            break
    assert [m for page in pages for m in page] == whole
    assert [len(page) for page in pages] == [3, 3, 3, 1]


async def test_what_waits_for_an_agent_with_the_longest_name(api: Api, log: Log) -> None:
    """Its session is named after it as far as there is room, and counts what names no session."""
    name = "a" * 128
    await api.agent(name)
    await api.chat(name, "one")
    await turns.begin(log, name)
    await api.chat(name, "two")
    (session,) = (await api.get("/sessions", agentId=name))["items"]
    assert session["pendingCount"] == 1
    assert await api.get(f"/sessions/{session['id']}") == session


async def test_a_session_counts_what_waits_for_it(api: Api, log: Log) -> None:
    await api.agent("ada")
    await api.chat("ada", "one")
    flight = await turns.begin(log, "ada")
    await api.chat("ada", "two")
    await api.chat("ada", "three", sessionId="other")
    session = await api.get("/sessions/ses_ada")
    assert session["pendingCount"] == 1
    assert session["activeTurn"] == flight.turn.id
    assert session["status"] == "active"
    assert session["reservedSlots"] == 0
    assert session["revision"] == 2
    listed = await api.get("/sessions", agentId="ada")
    assert listed["items"] == [session]
    await api.get("/sessions", 404, agentId="nobody")


async def test_a_turn_is_asked_to_stop(api: Api, log: Log) -> None:
    await api.agent("ada")
    await api.chat("ada", "one")
    flight = await turns.begin(log, "ada")
    before = (await api.get("/sessions/ses_ada"))["position"]
    stopped = await api.post("/sessions/ses_ada/stop", status=200)
    assert stopped["position"] != before
    assert await api.post("/sessions/ses_ada/stop", status=200)
    await turns.finish(log, flight, "too late")
    listed = await api.get("/agents/ada/mailbox")
    assert listed["history"][0]["status"] in {"cancelled", "completed"}


async def test_an_archived_session_takes_nothing_more(api: Api, log: Log) -> None:
    await api.agent("ada")
    await api.chat("ada", "one")
    flight = await turns.begin(log, "ada")
    busy = await api.post("/sessions/ses_ada/archive", status=409)
    assert busy["code"] == "session_busy"
    await turns.finish(log, flight, "done")
    archived = await api.post("/sessions/ses_ada/archive", status=200)
    assert archived["status"] == "archived"
    body = {"sourceType": "human_chat", "payload": {"content": "x"}, "sessionId": "ses_ada"}
    refused = await api.post("/agents/ada/mailbox", body, 409)
    assert refused["code"] == "session_archived"
    assert len((await api.get("/sessions/ses_ada/messages"))["items"]) == 2


async def test_a_deleted_session_is_gone(api: Api, log: Log) -> None:
    await api.agent("ada")
    await api.chat("ada", "one")
    await turns.whole_turn(log, "ada", "yes")
    there = await api.get("/sessions/ses_ada")
    gone = await api.client.delete("/api/sessions/ses_ada")
    assert gone.json()["status"] == "deleted"
    await api.get("/sessions/ses_ada", 404)
    await api.get("/sessions/ses_ada/messages", 404)
    assert (await api.get("/sessions", agentId="ada"))["items"] == []
    assert await api.get("/sessions/ses_ada", at=there["position"]) == there


async def test_another_agents_session_is_refused(api: Api, log: Log) -> None:
    await api.agent("ada")
    await api.agent("bob")
    await api.chat("ada", "one")
    await turns.whole_turn(log, "ada", "yes")
    body = {"sourceType": "human_chat", "payload": {"content": "x"}, "sessionId": "ses_ada"}
    refused = await api.post("/agents/bob/mailbox", body, 409)
    assert refused["code"] == "session_of_another_agent"
