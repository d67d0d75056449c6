"""A turn that waits for a person outlives every worker that has seen it."""

from __future__ import annotations

import json
import signal

import pytest

from tests.process.crew import BY, Crew, call
from tests.process.test_waits import nobody_is_held
from undivided.domain.approvals import Answer
from undivided.domain.events.people import ApprovalRequested
from undivided.domain.events.sessions import (
    ModelResponded,
    ToolCallFinished,
    ToolCallStarted,
    TurnEnded,
    TurnSuspended,
)
from undivided.domain.outcomes import Completed
from undivided.store.commands.approvals import answer

pytestmark = pytest.mark.process

ASK = call("request_user_approval", title="Deploy?", description="to production")
ASKS = ({"step": 0, "calls": [ASK]}, {"step": 1, "reply": "deployed"})


@pytest.mark.parametrize("answered_while", ["nobody is there", "another is there"])
async def test_the_worker_is_killed_while_it_waits(crew: Crew, answered_while: str) -> None:
    """The answer reaches a turn that no living worker has ever seen; no step is taken twice."""
    await crew.agent("ada", *ASKS)
    pid = crew.hire()
    (item,) = await crew.send("ada", "deploy it")
    await crew.recorded(TurnSuspended)
    await crew.until(lambda: nobody_is_held(crew))
    crew.kill(pid, signal.SIGKILL)
    await crew.left(pid)
    (request,) = await crew.events(ApprovalRequested)
    if answered_while == "another is there":
        crew.hire()
        await crew.at_work(1)
    await answer(crew.outlet, request.approval_id, Answer(True, comment="go"), BY)
    if answered_while == "nobody is there":
        crew.hire()
    await crew.over(item)
    (result,) = await crew.events(ToolCallFinished)
    assert json.loads(result.content) == {
        "status": "ok", "approved": True, "selected_option": "approve", "comment": "go",
    }  # fmt: skip
    assert len(await crew.events(ToolCallStarted)) == 1
    assert [one.step for one in await crew.events(ModelResponded)] == [0, 1]
    assert [one.outcome for one in await crew.events(TurnEnded)] == [Completed("deployed")]


async def test_it_expires_while_nobody_is_there(crew: Crew) -> None:
    """Whoever comes next finds that its time is over."""
    ask = call("request_user_approval", title="x", description="y", expires_in_seconds=0.5)
    await crew.agent("ada", {"step": 0, "calls": [ask]}, {"step": 1, "reply": "without it"})
    pid = crew.hire()
    (item,) = await crew.send("ada", "deploy it")
    await crew.recorded(TurnSuspended)
    crew.kill(pid, signal.SIGKILL)
    await crew.left(pid)
    crew.hire()
    await crew.over(item)
    (result,) = await crew.events(ToolCallFinished)
    assert json.loads(result.content)["status"] == "expired"
    assert [one.outcome for one in await crew.events(TurnEnded)] == [Completed("without it")]
