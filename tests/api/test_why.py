"""An item's story over HTTP: completed, merged, passed over, given up, cancelled, come back."""

from __future__ import annotations

from typing import Any

from tests.api.calls import Api
from tests.api.turns import begin, finish, use_tool, whole_turn
from undivided.domain.outcomes import Cancelled, Failed
from undivided.store.log import Log

REFUSED = Failed("refused", "the model would not", retryable=False)


async def story(api: Api, item_id: str, **query: Any) -> tuple[Any, str]:
    """An item's story, and all of its sentences in one text."""
    told = await api.get(f"/items/{item_id}/why", **query)
    return told, "\n".join(one["text"] for one in told["sentences"])


def kinds(told: Any) -> list[str]:
    return [one["kind"] for one in told["sentences"]]


async def test_of_a_completed_item(api: Api, log: Log) -> None:
    """Who sent it, why it has its priority, who picked it, what its turn did, how it ended."""
    await api.agent("ada")
    sent = await api.chat(
        "ada", "Is the kettle on?", metadata={"senderId": "bob", "senderName": "Bob"}
    )
    flight = await begin(log, "ada")
    await use_tool(log, flight, "kettle_state", "boiling")
    at_work, text = await story(api, sent["itemId"])
    assert kinds(at_work) == ["accepted", "picked", "turn_started", "at_work"]
    assert "so far it has 1 response and 1 tool call (kettle_state)" in text
    await finish(log, flight, "It boils.")
    told, text = await story(api, sent["itemId"])
    assert (told["itemId"], told["agentId"]) == (sent["itemId"], "ada")
    assert (told["status"], told["outcome"]) == ("completed", "completed")
    assert sorted(kinds(told)) == ["accepted", "completed", "picked", "turn_ended", "turn_started"]
    assert 'ada received a chat from Bob: "Is the kettle on?".' in text
    assert "priority 0 (critical), which is what a chat has" in text
    assert "2 responses and 1 tool call (kettle_state)" in text
    assert 'It is over: it answered "It boils.".' in text
    picked = next(one for one in told["sentences"] if one["kind"] == "picked")
    assert picked["decision"]["rule"] == "priority_fifo"
    assert picked["decision"]["policyVersion"] == 1
    event = await api.get(f"/events/{picked['eventId']}")
    assert event["position"] == picked["position"]


async def test_of_an_item_that_was_passed_over(api: Api, log: Log) -> None:
    """It names what was picked instead, and by which rule."""
    await api.agent("ada")
    later = await api.post(
        "/agents/ada/mailbox", {"sourceType": "system_event", "payload": {"content": "tidy up"}}
    )
    await api.chat("ada", "first me")
    await whole_turn(log, "ada", "so")
    told, text = await story(api, later["itemId"])
    (passed,) = [one for one in told["sentences"] if one["kind"] == "passed_over"]
    assert '"first me"' in passed["text"]
    assert "which has priority 0, was picked instead, by rule priority_fifo" in passed["text"]
    assert passed["decision"]["losers"] == [later["itemId"]]
    assert text.index("was picked instead") < text.index("ada turned to it")


async def test_of_one_whom_no_decision_names(api: Api, log: Log) -> None:
    """A decision names the best few; the picks that do not name it are counted."""
    await api.agent("ada")
    body = {"sourceType": "heartbeat", "payload": {"content": "patrol"}}
    last = await api.post("/agents/ada/mailbox", body)
    for n in range(12):
        await api.chat("ada", f"message {n}")
    await whole_turn(log, "ada", "so")
    told, text = await story(api, last["itemId"])
    named = [one for one in told["sentences"] if one["kind"] == "passed_over" and "decision" in one]
    unnamed = 12 - len(named)
    assert unnamed > 0
    assert f"Others were picked {unnamed} times before it whose decisions do not name it" in text


async def test_of_merged_items(api: Api, log: Log) -> None:
    """Both sides, and what became of the survivor."""
    await api.agent("ada", policy={"coalesceWindowMs": 0})
    comment = {"sourceType": "task_comment", "payload": {"content": "one", "taskId": "t1"}}
    first = await api.post("/agents/ada/mailbox", comment)
    by_bob = {"senderId": "bob", "senderRole": "user"}
    second = await api.post("/agents/ada/mailbox", {**comment, "metadata": by_bob})
    told, text = await story(api, second["itemId"])
    assert (told["status"], kinds(told)) == ("merged", ["accepted", "merged", "survivor"])
    assert "for a person wrote it; by itself its type has 2" in text
    assert f"It joined {first['itemId']} and is handled together with it" in text
    assert f"{first['itemId']} is queued." in text
    told, text = await story(api, first["itemId"])
    assert f"{second['itemId']} joined it; its priority is 0 (critical) from here on." in text
    before, text = await story(api, first["itemId"], at=first["position"])
    assert kinds(before) == ["accepted"]
    await whole_turn(log, "ada", "so")
    _, text = await story(api, second["itemId"])
    assert f"{first['itemId']} is over, with the outcome completed." in text


async def test_of_a_thousand_that_joined(api: Api) -> None:
    """The first are told one by one, the rest is counted."""
    await api.agent("ada")
    comment = {"sourceType": "task_comment", "payload": {"content": "c", "taskId": "t1"}}
    done = await api.post("/agents/ada/mailbox:batch", {"items": [comment] * 1000})
    told, text = await story(api, done["items"][0]["itemId"])
    assert kinds(told) == ["accepted", *["joined"] * 51]
    assert "And 949 more joined it by then." in text


async def test_of_an_item_that_was_given_up(api: Api, log: Log) -> None:
    """The rule, the last reason, and whom it told."""
    await api.agent("ada")
    sent = await api.chat("ada", "hello")
    await finish(log, await begin(log, "ada"), "", REFUSED)
    told, text = await story(api, sent["itemId"])
    assert told["status"] == "dead_letter"
    assert "It was given up, by rule refused" in text
    assert "The last reason was: refused: the model would not." in text
    assert "People were told once, in ntf_" in text


async def test_of_a_cancelled_item(api: Api, log: Log) -> None:
    """Who asked for it, and when it came to that."""
    await api.agent("ada")
    sent = await api.chat("ada", "hello")
    flight = await begin(log, "ada")
    await api.post("/sessions/ses_ada/stop", status=200)
    await finish(log, flight, "", Cancelled("user"))
    told, text = await story(api, sent["itemId"])
    assert (told["status"], told["outcome"]) == ("cancelled", "cancelled")
    assert "user asked its turn to stop." in text
    assert "It was cancelled by user." in text
    order = kinds(told)
    assert order.index("stop_requested") < order.index("cancelled")


async def test_of_nothing(api: Api) -> None:
    """An unknown item is not found, nor is one that was not there yet."""
    made = await api.agent("ada")
    await api.get("/items/nobody/why", 404)
    sent = await api.chat("ada", "hello")
    await api.get(f"/items/{sent['itemId']}/why", 404, at=made["position"])
