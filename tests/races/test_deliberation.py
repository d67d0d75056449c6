"""A mailbox managed by its agent, and a plan carried out, by real transactions.

The log is checked afterwards: every item is somewhere, and every row is what the log says.
"""

from __future__ import annotations

import json
from typing import Any

from tests.races.hand import hired
from tests.races.staging import Stage
from tests.races.test_interrupts import send
from tests.support.lives import BY, create
from undivided.domain.deliberation import Triaging, apply
from undivided.domain.dialogue import ToolCall, Usage
from undivided.domain.events import flights as f
from undivided.domain.events import sessions as s
from undivided.domain.events import triage as t
from undivided.domain.events.items import ItemDeferred, ItemDropped
from undivided.domain.outcomes import Completed
from undivided.domain.planning import CompleteDeliberation
from undivided.domain.recorded import session_stream
from undivided.domain.turn import evolve
from undivided.store import acting, landing
from undivided.store.acts.triage import considered
from undivided.store.flights import QUEUE_SEEN, Flight
from undivided.store.log import Addition, Log
from undivided.store.settings import Settings

Call = tuple[str, dict[str, object]]


async def results(stage: Stage) -> list[dict[str, Any]]:
    return [json.loads(one.content) for one in await stage.events(s.ToolCallFinished)]


async def test_an_agent_manages_its_mailbox(log: Log, stage: Stage, settings: Settings) -> None:
    """173, 175: what it does takes effect with the call's result."""
    await create(log, "ada")
    await send(log, "review_request", "work")
    later = await send(log, "system_event", "later", priority=3)
    stale = await send(log, "system_event", "stale", priority=3)
    extra = {"triggerExecution": True}
    kept = await send(log, "task_status_update", "go", priority=3, extra=extra)
    async with hired(settings) as hand:
        hand.model.calls = [
            [
                ("check_mailbox", {}),
                ("defer_mailbox_item", {"item_id": later, "reason": "no", "defer_minutes": 600}),
                ("drop_mailbox_item", {"item_id": stale, "reason": "old"}),
                ("drop_mailbox_item", {"item_id": stale, "reason": "old"}),
                ("drop_mailbox_item", {"item_id": kept, "reason": "no"}),
                ("drop_mailbox_item", {"item_id": "mbx_unknown", "reason": "no"}),
            ]
        ]
        await hand.attend("ada")
    looked, *told = await results(stage)
    assert (looked["status"], looked["queueDepth"]) == ("ok", 3)
    assert looked["currentFocus"]["label"] == "Review Request"
    assert [one["id"] for one in looked["items"]] == [later, stale, kept]
    assert [one["type"] for one in looked["recentDecisions"]] == ["pick"]
    assert [one["status"] for one in told] == [
        "deferred", "dropped", "already_resolved", "error", "already_resolved",
    ]  # fmt: skip
    (deferred,) = await stage.events(ItemDeferred)
    assert (deferred.item_id, deferred.wait_s) == (later, 36_000)
    assert [one.item_id for one in await stage.events(ItemDropped)] == [stale]
    assert dict(await stage.ask("SELECT id, status FROM items"))[kept] == "completed"


async def deliberating(log: Log, ids: tuple[str, ...]) -> Flight:
    """Ada deliberates about items, and has asked to complete it."""
    async with log.locked("ada", QUEUE_SEEN) as tx:
        started = s.TurnStarted(
            turn_id="trn_d", session_id="ses_d", agent_id="ada", item_ids=(),
            scenario="deliberation", origin="deliberation", index=0, responses_before=0,
            input="choose", epoch=1, backstop_s=600,
        )  # fmt: skip
        began = t.TriageBegan(
            agent_id="ada", turn_id="trn_d", session_id="ses_d", head=ids[0], item_ids=ids, epoch=1
        )
        acquired = f.FlightAcquired(agent_id="ada", epoch=1, worker="wrk_1")
        opened = s.SessionOpened(session_id="ses_d", agent_id="ada")
        rows: list[Any] = [await tx.row("items", one) for one in ids]
        appended = await tx.append(
            [tx.addition(acquired, began),
             Addition(session_stream("ses_d"), 0, (opened, started))], BY,
        )  # fmt: skip
        edition = tx.view.edition
    state = evolve(None, started)
    assert state is not None
    return Flight(
        agent=appended.rows["agents", "ada"], epoch=1, items=tuple(rows),
        session=appended.rows["sessions", "ses_d"], turn=appended.rows["turns", "trn_d"],
        state=state, version=2, edition=edition,
    )  # fmt: skip


async def complete(log: Log, flight: Flight, **args: Any) -> str:
    """The model calls `complete_deliberation`; answers what it reads."""
    step = flight.state.responses
    call = ToolCall(f"call_{step}", "complete_deliberation", args)
    await landing.record(log, flight, s.ModelResponded(
        turn_id="trn_d", step=step, text="", calls=(call,), usage=Usage(), model="m", epoch=1,
    ), s.ToolCallStarted(
        turn_id="trn_d", call_id=call.id, tool=call.tool, args=args, effect="pure",
        idempotency_key=call.id, epoch=1,
    ))  # fmt: skip
    assert await acting.act(log, flight, call, CompleteDeliberation(args)) is None
    last = flight.state.said[-1]
    return last.content


async def end(log: Log, flight: Flight, ids: tuple[str, ...]) -> None:
    """The plan is carried out, with the end of its turn."""
    async with log.locked("ada", QUEUE_SEEN) as tx:
        about = await considered(tx, ids)
        applied = apply(Triaging("trn_d", tx.agent, "trn_d", 1, about), flight.state.plan)
        over = s.TurnEnded(
            turn_id="trn_d", session_id="ses_d", agent_id="ada", item_ids=applied.inline,
            outcome=Completed("planned"), usage=Usage(), responses=flight.state.responses,
            tool_calls=flight.state.tool_calls, epoch=1,
        )  # fmt: skip
        released = f.FlightReleased(agent_id="ada", epoch=1, reason="done")
        await tx.append(
            [tx.addition(*applied.events, released), flight.session_events(over)], BY, flight.fence
        )


async def test_165_157_a_plan_is_checked_and_carried_out(log: Log, stage: Stage) -> None:
    """Refused with what it forgot, then recorded once, then applied."""
    await create(log, "ada")
    ids = tuple([await send(log, "system_event", f"work {n}") for n in range(5)])
    flight = await deliberating(log, ids)
    refused = json.loads(await complete(log, flight, process_item_id=ids[1]))
    assert (refused["status"], refused["orphaned"]) == ("error", list(ids[2:]))
    assert flight.state.plan is None
    newer = await send(log, "system_event", "newer")
    whole = {
        "process_item_ids": [ids[1], ids[2]], "defer_item_ids": [ids[3]],
        "inline_completed_ids": [ids[4]], "drop_item_ids": [ids[0]], "reasoning": "so",
    }  # fmt: skip
    assert await complete(log, flight, **whole) == "recorded"
    assert "complete already" in await complete(log, flight, **whole)
    await end(log, flight, ids)
    assert len(await stage.events(s.DeliberationPlanned)) == 1
    statuses = dict(await stage.ask("SELECT id, status FROM items"))
    assert [statuses[one] for one in (*ids, newer)] == [
        "dropped", "queued", "queued", "deferred", "completed", "queued",
    ]  # fmt: skip
    assert await stage.ask("SELECT waiting, deferred, attention_state FROM agents") == [
        (3, 1, "idle")
    ]
    ((last,),) = await stage.ask("SELECT last_triage FROM agents")
    assert (last["primary"], last["batch"], last["inline"]) == (ids[1], [ids[2]], [ids[4]])
    assert await stage.ask("SELECT item_id, rule FROM decisions WHERE type = 'triage'") == [
        (ids[1], "deliberation")
    ]
    assert await stage.ask("SELECT content FROM memories WHERE key = 'deliberation'") != []
