"""The cancel button: the turn at work ends for good, and the agent goes on."""

from __future__ import annotations

from tests.api import turns
from tests.api.calls import Api
from undivided.domain.outcomes import Cancelled
from undivided.store.log import Log


async def test_120_the_turn_at_work_is_asked_to_end(api: Api, log: Log) -> None:
    """By whoever pressed, once; the agent stays started and turns to what waits."""
    await api.agent("ada")
    cancelled = await api.chat("ada", "one")
    flight = await turns.begin(log, "ada")
    following = await api.chat("ada", "two")
    first = await api.post("/agents/ada/cancel-processing", status=200)
    assert first["status"] == "started"
    await api.post("/agents/ada/cancel-processing", status=200)
    (asked,) = (await api.get("/events", type="turn.stop_requested"))["items"]
    assert asked["data"]["turnId"] == flight.turn.id
    then = await turns.finish(log, flight, "", Cancelled(asked["data"]["by"]))
    assert then is not None
    assert then.item.id == following["itemId"]
    over = await api.get(f"/items/{cancelled['itemId']}")
    assert (over["status"], over["outcome"]) == ("cancelled", "cancelled")


async def test_120_without_a_turn_nothing_happens(api: Api, log: Log) -> None:
    """Neither then, nor to the turn that begins afterwards."""
    await api.agent("ada")
    before = await api.get("/agents/ada")
    told = await api.post("/agents/ada/cancel-processing", status=200)
    assert told["changedAt"] == before["changedAt"]
    assert (await api.get("/events", type="turn.stop_requested"))["items"] == []
    item = await api.chat("ada", "one")
    await turns.whole_turn(log, "ada", "so")
    assert (await api.get(f"/items/{item['itemId']}"))["status"] == "completed"


async def test_what_cannot_be_cancelled_is_refused(api: Api) -> None:
    """An agent that is not there, and a body where none is taken."""
    await api.post("/agents/nobody/cancel-processing", status=404)
    await api.agent("ada")
    await api.post("/agents/ada/cancel-processing", {"turnId": "trn_1"}, 422)
