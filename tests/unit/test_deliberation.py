"""What a deliberation may decide, and what becomes of everything that it considered.

The numbers are those of the scenarios in the behaviour catalogue.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.support import spec
from tests.support.events import BEGAN
from tests.support.spec import AGENT, SESSION, Situation, accepted, acquired
from undivided.domain.coordinates import Coordinate
from undivided.domain.deliberation import Applied, Triaging, abort, apply
from undivided.domain.dialogue import Usage
from undivided.domain.events import agents as a
from undivided.domain.events import flights as f
from undivided.domain.events import items as i
from undivided.domain.events import sessions as s
from undivided.domain.events import triage as t
from undivided.domain.events.catalogue import Event
from undivided.domain.invariants.history import findings_of
from undivided.domain.outcomes import Completed
from undivided.domain.placed import Placed
from undivided.domain.planning import Considered, Refusal, planned
from undivided.domain.plans import MemoryUpdate, Plan
from undivided.domain.state.agent import Focused, Idle
from undivided.domain.state.item import Deferred, Done, Dropped, Queued
from undivided.domain.transplant import names_for, renamed
from undivided.projections.table import fold
from undivided.store.codec import encode

TURN = "trn_d"


def began(*ids: str) -> t.TriageBegan:
    return t.TriageBegan(
        agent_id=AGENT, turn_id=TURN, session_id=SESSION, head=ids[0], item_ids=ids, epoch=1
    )


def item(kind: str = "system_event", priority: int = 2, item_id: str = "i1", **extra: Any) -> Any:
    """The acceptance of one item."""
    return accepted(item_id, kind, priority, payload=i.Payload(f"about {item_id}", extra=extra))


def deliberating(*items: Event) -> Situation:
    """Ada deliberates about all of them, the first being the head."""
    ids = [event.item_id for event in items if isinstance(event, i.StimulusAccepted)]
    return spec.given(*items, acquired(), began(*ids))


def three() -> Situation:
    return deliberating(*(item(item_id=f"i{n}") for n in (1, 2, 3)))


def about(situation: Situation) -> Considered:
    focus = situation.agent.attention
    assert isinstance(focus, Focused)
    return Considered(focus.considered, {one.id: one for one in situation.items})


def triaging(situation: Situation, **given: Any) -> Triaging:
    return Triaging(
        name=TURN, agent=situation.agent, turn_id=TURN, epoch=1, about=about(situation), **given
    )


def carried_out(situation: Situation, plan: Plan | None) -> tuple[Applied, Situation]:
    """What a plan comes to, and the agent once that is recorded."""
    applied = apply(triaging(situation), plan)
    return applied, after(situation, applied)


def after(situation: Situation, applied: Applied) -> Situation:
    rows = dict(situation.rows)
    fold(rows, [spec.recorded(100 + n, event) for n, event in enumerate(applied.events)])
    return Situation(rows)


def only(applied: Applied, kind: type[Event]) -> list[Any]:
    return [event for event in applied.events if isinstance(event, kind)]


class TestPlanning:
    """What `complete_deliberation` takes."""

    def test_165_nothing_is_forgotten(self) -> None:
        """The head counts by itself, people's messages need no mention."""
        situation = deliberating(
            item(item_id="i1"), item(item_id="i2"), item(item_id="i3"),
            item("human_chat", 0, "i4"),
        )  # fmt: skip
        refusal = planned({"process_item_id": "i2"}, about(situation))
        assert isinstance(refusal, Refusal)
        told = json.loads(refusal.text)
        assert (told["status"], told["orphaned"]) == ("error", ["i3"])
        assert "i3" in told["error"]
        plan = planned({"process_item_id": "i2", "drop_item_ids": ["i3"]}, about(situation))
        assert plan == Plan(process=("i2",), drop=("i3",))

    def test_unknown_and_doubled_ids_are_refused(self) -> None:
        """Ruling 44."""
        args = {
            "process_item_id": "i1", "defer_item_ids": ["i2", "i9"], "drop_item_ids": ["i2"],
            "inline_completed_ids": ["i3"],
        }  # fmt: skip
        refusal = planned(args, about(three()))
        assert isinstance(refusal, Refusal)
        assert (refusal.unknown, refusal.doubled, refusal.orphaned) == (("i9",), ("i2",), ())

    def test_an_item_to_process_is_needed(self) -> None:
        """Without one nothing is recorded."""
        refusal = planned({"defer_item_ids": ["i2", "i3"]}, about(three()))
        assert isinstance(refusal, Refusal)
        assert refusal.error.startswith("process_item_id or process_item_ids")

    @pytest.mark.parametrize(
        ("args", "process"),
        [
            ({"process_item_ids": ["i2"]}, ("i2",)),
            ({"process_item_id": "i1", "process_item_ids": ["i2"]}, ("i1",)),
            ({"process_item_id": "i2", "process_item_ids": ["i2", "i3"]}, ("i2", "i3")),
            ({"process_item_ids": ["i3", "i2", "i3"]}, ("i3", "i2")),
        ],
    )
    def test_a_batch_has_more_than_one(self, args: dict[str, Any], process: Any) -> None:
        """One alone is the item itself."""
        listed = {one for ids in args.values() for one in ([ids] if isinstance(ids, str) else ids)}
        rest = [one for one in ("i2", "i3") if one not in process and one not in listed]
        if args.get("process_item_id") == "i1":
            rest = ["i2", "i3"]
        plan = planned({**args, "defer_item_ids": rest}, about(three()))
        assert isinstance(plan, Plan)
        assert plan.process == process

    def test_what_has_gone_meanwhile_may_be_named_or_not(self) -> None:
        """A tool has dropped it already."""
        situation = deliberating(item(item_id="i1"), item(item_id="i2"))
        gone = replace(situation.item("i2"), phase=Dropped("stale", BEGAN))
        rest = Considered(("i1", "i2"), {"i1": situation.item("i1"), "i2": gone})
        assert planned({"process_item_id": "i1"}, rest) == Plan(process=("i1",))
        named = planned({"process_item_id": "i1", "drop_item_ids": ["i2"]}, rest)
        assert named == Plan(process=("i1",))


class TestApplying:
    """What becomes of everything that was considered."""

    def test_155_the_plan_chooses(self) -> None:
        """Not the order of the queue."""
        applied, then = carried_out(three(), Plan(process=("i3",)))
        assert applied.primary is not None
        assert applied.primary.id == "i3"
        assert then.agent.attention == Idle(BEGAN)
        assert then.agent.waiting == 3

    def test_156_what_is_processed_is_not_done(self) -> None:
        """Even if the plan says both."""
        applied, then = carried_out(three(), Plan(process=("i2",), inline=("i2",)))
        assert applied.inline == ()
        assert isinstance(then.item("i2").phase, Queued)

    def test_009_157_what_was_dealt_with_is_done(self) -> None:
        """By the deliberation's own turn."""
        applied, then = carried_out(three(), Plan(process=("i1",), inline=("i2",)))
        assert isinstance(then.item("i2").phase, Done)
        (completed,) = only(applied, i.ItemCompleted)
        assert (completed.turn_id, completed.decision.type) == (TURN, "complete")
        assert applied.inline == ("i2",)
        assert then.agent.waiting == 2

    def test_157_the_head_can_be_dealt_with(self) -> None:
        """Ruling 43, if it is not what the agent turns to."""
        applied, then = carried_out(three(), Plan(process=("i2",), inline=("i1",)))
        assert isinstance(then.item("i1").phase, Done)
        assert applied.primary == then.item("i2")

    @pytest.mark.parametrize("mark", ["triggerExecution", "directMention"])
    @pytest.mark.parametrize("head", [True, False])
    def test_159_what_is_protected_waits_on(self, mark: str, head: bool) -> None:
        """Also as the head (ruling 43)."""
        marks: dict[str, Any] = {mark: True}
        marked, plain = item(item_id="i1", **marks), item(item_id="i2")
        situation = deliberating(marked, plain) if head else deliberating(plain, marked)
        for plan in (
            Plan(process=("i2",), defer=("i1",)),
            Plan(process=("i2",), drop=("i1",)),
            Plan(process=("i2",), inline=("i1",)),
        ):
            _, then = carried_out(situation, plan)
            assert isinstance(then.item("i1").phase, Queued)

    def test_160_a_batch(self) -> None:
        """Two siblings, and what is said of all of them."""
        plan = Plan(process=("i2", "i1", "i3"), batch_context="all about x")
        applied, _ = carried_out(three(), plan)
        assert applied.primary is not None
        assert applied.primary.id == "i2"
        assert [one.id for one in applied.siblings] == ["i1", "i3"]
        assert applied.batch_context == "all about x"

    def test_161_memory_in_order(self) -> None:
        """And then how the agent sees its situation."""
        updates = (MemoryUpdate("a", "1"), MemoryUpdate("l", "x", "longterm"),
                   MemoryUpdate("b", "2"))  # fmt: skip
        plan = Plan(process=("i1",), memory_updates=updates, awareness="calm")
        applied, _ = carried_out(three(), plan)
        noted = [(one.key, one.content) for one in only(applied, a.MemoryNoted)]
        assert noted == [("a", "1"), ("b", "2"), ("deliberation", "calm")]
        assert applied.longterm == (MemoryUpdate("l", "x", "longterm"),)

    def test_161_a_summary_where_it_says_nothing(self) -> None:
        """Of what was decided."""
        plan = Plan(process=("i1",), defer=("i2",), drop=("i3",), reasoning="first things first")
        applied, _ = carried_out(three(), plan)
        (noted,) = only(applied, a.MemoryNoted)
        assert noted.content == "turned to i1; put off i2; discarded i3; first things first"


class TestRecording:
    """What is left behind, and that nothing is lost."""

    def test_167_one_decision_about_the_chosen(self) -> None:
        """It is the last event, and the mind shows it."""
        plan = Plan(process=("i2",), defer=("i1",), drop=("i3",), reasoning="because")
        applied, then = carried_out(three(), plan)
        assert isinstance(applied.events[-1], t.TriageApplied)
        decided = [one for (table, _), one in then.rows.items() if table == "decisions" and one]
        (triage,) = [one for one in decided if one.type == "triage"]
        assert (triage.item_id, triage.rule, triage.turn_id) == ("i2", "deliberation", TURN)
        assert triage.losers == ("i1", "i3")
        assert not [one for one in decided if one.type == "pick"]
        last = then.agent.last_triage
        assert last is not None
        assert (last.primary, last.deferred, last.dropped) == ("i2", ("i1",), ("i3",))
        assert isinstance(then.item("i1").phase, Deferred)
        assert then.agent.waiting == 1
        assert then.agent.deferred == 1

    def test_without_a_plan_the_head_is_next(self) -> None:
        """The turn ended without one."""
        applied, then = carried_out(three(), None)
        assert applied.primary == then.item("i1")
        assert len(applied.events) == 1
        assert then.agent.waiting == 3

    def test_the_chosen_has_gone(self) -> None:
        """Then the head is next, even if the plan had put it off."""
        situation = three()
        gone = replace(situation.item("i3"), phase=Dropped("x", BEGAN))
        situation.rows["items", "i3"] = gone
        applied, then = carried_out(situation, Plan(process=("i3", "i2"), defer=("i1",)))
        assert applied.primary == then.item("i1")
        assert applied.siblings == ()

    def test_a_turn_set_aside_goes_on_alone(self) -> None:
        """It is neither discarded nor taken into a batch."""
        situation = three()
        begun = replace(situation.item("i2"), phase=Queued(turn_id="trn_0", session_id=SESSION))
        situation.rows["items", "i2"] = begun
        applied, _ = carried_out(situation, Plan(process=("i1", "i2"), drop=("i2",)))
        assert applied.siblings == ()
        assert only(applied, i.ItemDropped) == []
        applied, _ = carried_out(situation, Plan(process=("i2", "i1")))
        assert applied.primary == begun
        assert applied.siblings == ()

    def test_164_a_discarded_plan_changes_nothing_but_what_is_done(self) -> None:
        """Ruling 20: what was dealt with is recorded as that."""
        situation = three()
        plan = Plan(process=("i1",), inline=("i2",), drop=("i3",))
        applied = abort(triaging(situation), plan, "a person wrote")
        then = after(situation, applied)
        assert applied.primary is None
        assert isinstance(then.item("i2").phase, Done)
        assert isinstance(then.item("i3").phase, Queued)
        assert isinstance(then.item("i1").phase, Queued)
        assert then.agent.last_triage is not None
        assert then.agent.last_triage.aborted
        assert then.agent.attention == Idle(BEGAN)

    @given(st.data())
    def test_no_item_is_lost(self, data: st.DataObject) -> None:
        """Whatever the plan: each is over, put off or waiting; and what is processed waits."""
        kinds = st.sampled_from([("system_event", {}), ("human_chat", {}),
                                 ("a2a_message", {"directMention": True}),
                                 ("task_status_update", {"triggerExecution": True})])  # fmt: skip
        drawn = data.draw(st.lists(kinds, min_size=1, max_size=6))
        situation = deliberating(*(
            item(kind, 2, f"i{n}", **extra) for n, (kind, extra) in enumerate(drawn, start=1)
        ))  # fmt: skip
        ids = [one.id for one in situation.items]
        for item_id in data.draw(st.lists(st.sampled_from(ids), max_size=2)):
            gone = replace(situation.item(item_id), phase=Dropped("gone", BEGAN))
            situation.rows["items", item_id] = gone
        waiting = sum(isinstance(one.phase, Queued) for one in situation.items)
        situation.rows["agents", AGENT] = replace(situation.agent, waiting=waiting)
        some = st.lists(st.sampled_from([*ids, "i99"]), max_size=6).map(tuple)
        plan = data.draw(st.none() | st.builds(
            Plan, process=some, defer=some, drop=some, inline=some))  # fmt: skip
        applied, then = carried_out(situation, plan)
        assert {one.id for one in then.items} == set(ids)
        queued = [one.id for one in then.items if isinstance(one.phase, Queued)]
        deferred = [one.id for one in then.items if isinstance(one.phase, Deferred)]
        over = [one.id for one in then.items if isinstance(one.phase, Done | Dropped)]
        assert sorted([*queued, *deferred, *over]) == sorted(ids)
        taken = [one.id for one in (applied.primary, *applied.siblings) if one is not None]
        assert set(taken) <= set(queued)
        assert len(set(taken)) == len(taken)
        assert then.agent.waiting == len(queued)
        assert then.agent.deferred == len(deferred)
        touched = [
            event.item_id
            for event in applied.events
            if isinstance(event, i.ItemCompleted | i.ItemDeferred | i.ItemDropped)
        ]
        assert len(set(touched)) == len(touched)
        assert not set(touched) & set(taken)


class TestTheFocus:
    """A deliberation holds the agent, and its items wait."""

    def test_another_worker_goes_on_with_it(self) -> None:
        """It is still a deliberation, about the same."""
        situation = three()
        regained = f.FocusRegained(agent_id=AGENT, turn_id=TURN, epoch=2, cause="orphaned")
        rows = dict(situation.rows)
        fold(rows, [spec.recorded(50, regained)])
        focus = Situation(rows).agent.attention
        assert isinstance(focus, Focused)
        assert (focus.epoch, focus.mode, focus.considered) == (
            2,
            "deliberating",
            ("i1", "i2", "i3"),
        )
        assert situation.agent.waiting == 3

    @pytest.mark.parametrize(("considered", "broken"), [(("i1", "i2"), []), (("i1",), ["i2"])])
    def test_only_what_was_considered_is_done_by_it(
        self, considered: tuple[str, ...], broken: list[str]
    ) -> None:
        """Invariant 2: an item that waits is completed by no other turn."""
        started = s.TurnStarted(
            turn_id=TURN, session_id=SESSION, agent_id=AGENT, item_ids=(),
            scenario="deliberation", origin="deliberation", index=0, responses_before=0,
            input="choose", epoch=1, backstop_s=60,
        )  # fmt: skip
        ended = s.TurnEnded(
            turn_id=TURN, session_id=SESSION, agent_id=AGENT, item_ids=("i2",),
            outcome=Completed("so"), usage=Usage(), responses=1, tool_calls=1, epoch=1,
        )  # fmt: skip
        applied = apply(triaging(three()), Plan(process=("i1",), inline=("i2",)))
        appends: list[tuple[Event, ...]] = [
            (item(item_id="i1"), item(item_id="i2")),
            (acquired(), began(*considered), started),
            (*applied.events, ended),
        ]
        placed, versions = list[Placed](), dict[str, int]()
        for txid, events in enumerate(appends, start=1):
            for event in events:
                one = spec.recorded(len(placed) + 1, event)
                versions[one.stream] = versions.get(one.stream, 0) + 1
                one = replace(one, version=versions[one.stream])
                placed.append(Placed(Coordinate(txid, len(placed) + 1), one))
        assert [found.subject for found in findings_of(placed)] == broken

    def test_a_history_under_another_name_keeps_its_plans_apart(self) -> None:
        """Every item that is named is the namesake's own."""
        events = (
            *(item(item_id=f"i{n}") for n in (1, 2, 3)), began("i1", "i2", "i3"),
            s.DeliberationPlanned(
                turn_id=TURN, plan=Plan(process=("i1",), defer=("i2",), inline=("i3",)), epoch=1
            ),
            *apply(triaging(three()), Plan(process=("i1",), defer=("i2",))).events,
        )  # fmt: skip
        history = [spec.recorded(n, event) for n, event in enumerate(events, start=1)]
        names = names_for((AGENT, "bob"), history)
        text = b"".join(encode(renamed(one, names).event) for one in history[3:]).decode()
        assert not [old for old in ('"i1"', '"i2"', '"i3"') if old in text]
