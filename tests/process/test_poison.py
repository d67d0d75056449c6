"""An item that kills whoever touches it comes to an end, and takes nobody else along."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.process.crew import Crew, call, lines, locked
from undivided.domain.events.items import ItemDeadLettered, NoticePosted
from undivided.domain.events.sessions import ToolCallFinished, ToolCallStarted, TurnResumed

pytestmark = pytest.mark.process


async def test_it_is_given_up_in_the_end(crew: Crew, tmp_path: Path) -> None:
    """C77: the log counts how often a flight was lost; then one notice, and the next item."""
    deadly = call("test_append", path=str(tmp_path / "pure"), line="x", effect="pure")
    await crew.agent(
        "ada", {"contains": "poison", "step": 0, "calls": [deadly]}, {"reply": "so"},
        maxDeliveryAttempts=2,
    )  # fmt: skip
    poison, harmless = await crew.send("ada", "poison", "harmless")
    with locked(tmp_path / "pure"):
        for flight in range(2):
            crew.hire()
            await crew.recorded(TurnResumed, flight) if flight else await crew.recorded(
                ToolCallStarted
            )
            crew.kill(crew.stack.pids("worker")[0])
        crew.hire()
        await crew.over(poison, harmless)
    assert await crew.status(poison) == "dead_letter"
    assert await crew.status(harmless) == "completed"
    assert lines(tmp_path / "pure") == 0
    (dead,) = await crew.events(ItemDeadLettered)
    assert dead.decision.rule == "flight_lost"
    assert [one.item_id for one in await crew.events(NoticePosted)] == [poison]
    (result,) = await crew.events(ToolCallFinished)
    assert result.resolution == "interrupted"
