"""What people were told and asked, over HTTP and over the WebSocket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import websockets
from websockets.asyncio.client import ClientConnection, connect

from tests.api import turns
from tests.api.calls import Api
from undivided.domain.approvals import AskPerson
from undivided.domain.dialogue import ToolCall
from undivided.domain.events.sessions import ToolCallStarted
from undivided.domain.notifications import Related, Tell
from undivided.domain.outcomes import Failed
from undivided.domain.tooling import Act
from undivided.store import acting, landing
from undivided.store.flights import Flight
from undivided.store.log import Log


async def act(log: Log, flight: Flight, tool: str, wanted: Act) -> None:
    """The model calls one of the agent's own tools."""
    call = ToolCall(f"call_{flight.version}", tool, {})
    await landing.record(log, flight, turns.said(flight, "", [call]))
    started = ToolCallStarted(
        turn_id=flight.turn.id, call_id=call.id, tool=tool, args={}, effect="pure",
        idempotency_key=call.id, epoch=flight.epoch,
    )  # fmt: skip
    await landing.record(log, flight, started)
    await acting.act(log, flight, call, wanted)


async def asked(api: Api, log: Log, agent_id: str = "ada", **more: Any) -> Any:
    """An agent has asked its owner, and waits; the request as the API tells it."""
    await api.agent(agent_id)
    body = {"sourceType": "system_event", "payload": {"content": "work"}}
    await api.post(f"/agents/{agent_id}/mailbox", body)
    flight = await turns.begin(log, agent_id)
    ask = AskPerson(title="Deploy?", description="to production", **more)
    await act(log, flight, "request_user_approval", ask)
    (request,) = (await api.get("/approvals", agentId=agent_id))["items"]
    return request


async def told(api: Api, log: Log, *tells: Tell) -> None:
    """Ada tells people something."""
    await api.agent("ada")
    await api.chat("ada", "look")
    flight = await turns.begin(log, "ada")
    for tell in tells:
        await act(log, flight, "notify_user", tell)
    await turns.finish(log, flight, "done")


class TestApprovals:
    """Asked, listed, answered once."""

    async def test_233_a_request_and_its_answer(self, api: Api, log: Log) -> None:
        request = await asked(api, log)
        assert request["status"] == "pending"
        assert request["approved"] is None
        assert [one["id"] for one in request["options"]] == ["approve", "reject"]
        (bell,) = (await api.get("/notifications"))["items"]
        assert (bell["type"], bell["priority"], bell["read"]) == ("approval_request", "high", False)
        assert bell["metadata"] == {"approvalId": request["id"]}
        path = f"/approvals/{request['id']}"
        body = {"approved": True, "comment": "go"}
        done = await api.post(path, body, 200, key="k")
        assert (done["status"], done["selectedOption"], done["comment"]) == (
            "approved", "approve", "go",
        )  # fmt: skip
        assert await api.post(path, body, 200, key="k") == done
        assert (await api.post(path, body, 409))["code"] == "approval_answered"
        shown = await api.get(path, minPosition=done["position"])
        assert shown | {"position": ""} == done | {"position": ""}
        assert (await api.get(path, at=request["position"])) == request
        (bell,) = (await api.get("/notifications"))["items"]
        assert bell["read"] is True
        flight = await turns.begin(log, "ada")
        await turns.finish(log, flight, "deployed")
        transcript = await api.get(f"/sessions/{request['sessionId']}/messages")
        (answer,) = [m["content"] for m in transcript["items"] if m["role"] == "tool"]
        assert json.loads(answer)["comment"] == "go"

    async def test_lists_by_status_and_agent(self, api: Api, log: Log) -> None:
        first = await asked(api, log, "ada")
        second = await asked(api, log, "bob")
        await api.post(f"/approvals/{first['id']}", {"approved": False}, 200)
        everything = await api.get("/approvals", limit="1")
        assert [one["id"] for one in everything["items"]] == [second["id"]]
        rest = await api.get("/approvals", limit="1", cursor=everything["nextCursor"])
        assert [one["id"] for one in rest["items"]] == [first["id"]]
        assert rest["nextCursor"] is None
        for status, expected in (("pending", [second]), ("rejected", [first]), ("expired", [])):
            page = await api.get(f"/approvals?status={status}")
            assert [one["id"] for one in page["items"]] == [one["id"] for one in expected]
        then = await api.get(f"/approvals?status=pending&at={first['position']}")
        assert [one["id"] for one in then["items"]] == [first["id"]]

    async def test_refuses_what_cannot_be(self, api: Api, log: Log) -> None:
        request = await asked(api, log, allow_freeform=False)
        path = f"/approvals/{request['id']}"
        for body in (
            {}, {"approved": "yes"}, {"approved": True, "selectedOption": "maybe"},
            {"approved": True, "selectedOption": "reject"}, {"approved": True, "comment": "but"},
            {"approved": True, "else": 1},
        ):  # fmt: skip
            await api.post(path, body, 422)
        await api.post("/approvals/apr_unknown", {"approved": True}, 404)
        await api.post("/approvals/%00", {"approved": True}, 404)
        await api.get("/approvals/apr_unknown", 404)
        await api.get("/approvals?status=lost", 422)
        assert (await api.get(path))["status"] == "pending"

    async def test_one_that_expired_is_shown_and_refused_as_such(self, api: Api, log: Log) -> None:
        request = await asked(api, log, expires_s=0.01)
        path = f"/approvals/{request['id']}"
        await api.until(path, lambda one: one["status"] == "expired")
        assert (await api.post(path, {"approved": True}, 409))["code"] == "approval_expired"
        assert (await api.get("/approvals?status=expired"))["items"][0]["id"] == request["id"]

    async def test_one_whose_turn_is_over_is_cancelled(self, api: Api, log: Log) -> None:
        request = await asked(api, log)
        await api.post(f"/sessions/{request['sessionId']}/stop", status=200)
        flight = await turns.begin(log, "ada")
        await turns.finish(log, flight, "stopped")
        path = f"/approvals/{request['id']}"
        assert (await api.get(path))["status"] == "cancelled"
        assert (await api.post(path, {"approved": True}, 409))["code"] == "approval_cancelled"
        assert (await api.get(path))["status"] == "cancelled"
        assert (await api.get(path, at=request["position"]))["status"] == "pending"


class TestNotifications:
    """Listed with their counts, and marked as read."""

    async def test_235_total_and_unread(self, api: Api, log: Log) -> None:
        await told(
            api, log, Tell(title="One", body="1", related=Related("tsk_1")),
            Tell(title="Two", body="2", target="all"),
        )  # fmt: skip
        page = await api.get("/notifications")
        assert (page["totalCount"], page["unreadCount"]) == (2, 2)
        assert page["items"] == page["notifications"]
        two, one = page["items"]
        assert (one["actionType"], one["actionTarget"]) == (
            "navigate", {"path": "/work?task=tsk_1"},
        )  # fmt: skip
        assert two["actionTarget"] == {"agentId": "ada", "sessionId": "ses_ada"}
        marked = await api.post(f"/notifications/{one['id']}/read", status=200)
        assert (marked["success"], marked["count"]) == (True, 1)
        page = await api.get("/notifications", unread="true")
        assert (page["totalCount"], page["unreadCount"]) == (1, 1)
        assert [row["id"] for row in page["items"]] == [two["id"]]
        rest = await api.post("/notifications/mark-all-read", status=200)
        assert rest["count"] == 1
        assert (await api.get("/notifications"))["unreadCount"] == 0
        then = await api.get("/notifications", at=two["position"], unread="true")
        assert (then["totalCount"], then["unreadCount"]) == (2, 2)

    async def test_others_see_only_what_is_for_everybody(self, api: Api, log: Log) -> None:
        await told(
            api, log, Tell(title="One", body="1"), Tell(title="Two", body="2", target="all"),
            Tell(title="Three", body="3", target="bob"),
        )  # fmt: skip
        for user, titles in (("owner", ["Two", "One"]), ("bob", ["Three", "Two"])):
            page = await api.get("/notifications", userId=user)
            assert [row["title"] for row in page["items"]] == titles
        first = await api.get("/notifications", userId="bob", limit="1")
        rest = await api.get("/notifications", userId="bob", cursor=first["nextCursor"])
        assert [row["title"] for row in rest["items"]] == ["Two"]
        assert (await api.get("/notifications", offset="1"))["items"][0]["title"] == "One"

    async def test_a_dead_letter_is_one(self, api: Api, log: Log) -> None:
        await api.agent("ada")
        await api.chat("ada", "hi")
        flight = await turns.begin(log, "ada")
        await turns.finish(log, flight, "", Failed("refused", "no", retryable=False))
        (bell,) = (await api.get("/notifications", type="system"))["items"]
        assert (bell["priority"], bell["agentId"]) == ("high", "ada")
        await api.post(f"/notifications/{bell['id']}/read", status=200)

    async def test_refuses_what_cannot_be(self, api: Api) -> None:
        await api.get("/notifications", 422, type="gossip")
        await api.get("/notifications", 422, userId="")
        await api.get("/notifications", 422, unread="maybe")
        await api.post("/notifications/ntf_unknown/read", status=404)
        assert (await api.post("/notifications/mark-all-read", status=200))["count"] == 0

    async def test_the_message_stands_in_the_chat(self, api: Api, log: Log) -> None:
        await told(api, log, Tell(title="One", body="1", priority="high"))
        transcript = (await api.get("/sessions/ses_ada/messages"))["items"]
        (posted,) = [
            m for m in transcript if m["source"] == "notify_user" and m["role"] == "assistant"
        ]
        assert posted["visibility"] == "visible"
        assert posted["content"].startswith("**One**\n\n1")
        assert posted["metadata"] == {"notifyUser": True, "priority": "high"}


@asynccontextmanager
async def listening(api: Api, query: str = "", path: str = "/api/ws") -> AsyncIterator[Ear]:
    """A WebSocket that has been greeted."""
    url = str(api.client.base_url).replace("http", "ws").rstrip("/")
    async with connect(f"{url}{path}{query}") as socket:
        ear = Ear(socket)
        assert (await ear.next())["type"] == "connected"
        yield ear


class Ear:
    """What a WebSocket brings."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket

    async def next(self) -> Any:
        """The next frame."""
        async with asyncio.timeout(10):
            frame = json.loads(await self.socket.recv())
        assert set(frame) == {"type", "payload", "timestamp"}
        return frame

    async def until(self, kind: str) -> list[Any]:
        """All frames up to the first of a type, that one included."""
        frames = [await self.next()]
        while frames[-1]["type"] != kind:
            frames.append(await self.next())
        return frames


class TestWebSocket:
    """What happens is told as it happens, to whoever wants to hear it."""

    async def test_tells_of_a_turn_in_the_documents_names(self, api: Api, log: Log) -> None:
        async with listening(api) as ear:
            await api.agent("ada")
            await api.chat("ada", "look")
            flight = await turns.begin(log, "ada")
            await act(log, flight, "notify_user", Tell(title="One", body="1"))
            await turns.finish(log, flight, "done")
            frames = await ear.until("notification")
            frames += await ear.until("agent:focus")
        kinds = [frame["type"] for frame in frames]
        for kind in (
            "agent:update", "agent:mailbox", "agent:decision", "agent:attention", "agent:focus",
            "agent:activity_log", "chat:proactive_message", "notification",
        ):  # fmt: skip
            assert kind in kinds
        assert {frame["payload"].get("agentId") for frame in frames} == {"ada"}
        states = [f["payload"]["state"] for f in frames if f["type"] == "agent:attention"]
        assert states == ["focused", "idle"]

    async def test_tells_a_notification_to_its_person_alone(self, api: Api, log: Log) -> None:
        async with listening(api, "?userId=bob", "/ws") as ear:
            await told(
                api, log, Tell(title="One", body="1"), Tell(title="Two", body="2", target="bob"),
                Tell(title="Three", body="3", target="all"),
            )  # fmt: skip
            heard = [(await ear.until("notification"))[-1] for _ in range(2)]
        assert [one["payload"]["title"] for one in heard] == ["Two", "Three"]

    async def test_tells_only_of_the_agents_that_are_subscribed_to(self, api: Api) -> None:
        async with listening(api, "?agentId=bob") as ear:
            for name in ("ada", "bob", "cyd"):
                await api.agent(name)
            assert (await ear.next())["payload"]["agentId"] == "bob"
            await ear.socket.send('{"subscribe": ["cyd"], "unsubscribe": ["bob"]}')
            assert (await ear.next())["payload"] == {"agents": ["cyd"]}
            for name in ("ada", "bob", "cyd"):
                await api.post(f"/agents/{name}/pause", status=200)
            frame = await ear.next()
            assert (frame["type"], frame["payload"]["agentId"]) == ("agent:paused", "cyd")

    async def test_what_makes_no_sense_is_answered(self, api: Api) -> None:
        async with listening(api) as ear:
            for nonsense in ("{", "[]", "{}", '{"subscribe": "ada"}', '{"shout": []}'):
                await ear.socket.send(nonsense)
                assert (await ear.next())["type"] == "error"
        url = str(api.client.base_url).replace("http", "ws").rstrip("/")
        with pytest.raises(websockets.InvalidStatus):
            async with connect(f"{url}/api/ws?userId="):
                pass
