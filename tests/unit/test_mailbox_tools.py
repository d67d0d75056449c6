"""The tools by which an agent manages its own mailbox, by rule.

The numbers are those of the scenarios in the behaviour catalogue.
"""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from tests.support import spec
from tests.support.events import BEGAN
from tests.support.spec import AGENT, Situation, accepted
from undivided.domain.events import items as i
from undivided.domain.mailbox_tools import (
    DeferItem,
    DropItem,
    Owned,
    PrioritizeItem,
    Told,
    checked,
    deferred,
    dropped,
    prioritized,
)
from undivided.domain.scenarios import SCENARIOS
from undivided.domain.state.agent import Focused
from undivided.domain.state.item import Dropped, ItemRow, Processing, Queued
from undivided.domain.state.session import DecisionRow
from undivided.workers.tools import Tools


def mailbox() -> Situation:
    """A system event, a person's message, and what starts a task."""
    starts = i.Payload("go", extra={"triggerExecution": True})
    return spec.given(
        accepted("i1", "system_event", 2),
        accepted("i2", "human_chat", 0),
        accepted("i3", "task_status_update", 1, payload=starts),
    )


def owned(situation: Situation) -> Owned:
    return Owned(situation.agent, 3, "dec_1")


def read(told: Told) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(told.content)
    return answer


def at_work(item: ItemRow) -> ItemRow:
    return replace(item, phase=Processing("trn_1", BEGAN))


class TestChecking:
    """Looking changes nothing."""

    def test_173_what_is_shown(self) -> None:
        """Depth, focus, what waits, what was decided; long reasons are cut."""
        situation = mailbox()
        focus = Focused("trn_1", "ses_1", ("i2",), 1, BEGAN)
        view = replace(
            situation.view, now=BEGAN + timedelta(seconds=2),
            focus=(at_work(situation.item("i2")),),
            agent=replace(situation.agent, attention=focus, waiting=2),
        )  # fmt: skip
        made = DecisionRow(
            id="dec_1", agent_id=AGENT, type="pick", rule="priority_fifo", reasoning="x" * 300,
            item_id="i2", turn_id="trn_1", inputs={}, losers=(), policy_version=1, version=1,
            made_at=BEGAN,
        )  # fmt: skip
        waiting = (situation.item("i3"), situation.item("i1"))
        told = json.loads(checked(view, waiting, (made,)))
        assert (told["status"], told["queueDepth"]) == ("ok", 2)
        assert told["currentFocus"] == {
            "type": "human_chat", "label": "Chat", "elapsedMs": 2000,
        }  # fmt: skip
        assert told["items"][1] == {
            "id": "i1", "type": "system_event", "priority": 2, "summary": "content of i1",
            "ageMs": 2000,
        }  # fmt: skip
        assert len(told["items"]) == 2
        (decision,) = told["recentDecisions"]
        assert decision["reasoning"] == "x" * 200

    def test_nothing_in_focus(self) -> None:
        """As in a deliberation."""
        assert json.loads(checked(mailbox().view, (), ()))["currentFocus"] is None


class TestDeferring:
    """Putting off."""

    @pytest.mark.parametrize("wait_s", [None, 0.0, 90.0])
    def test_a_waiting_item(self, wait_s: float | None) -> None:
        """For a time, or until the agent is idle."""
        situation = mailbox()
        told = deferred(owned(situation), situation.item("i1"), DeferItem("i1", "later", wait_s))
        assert read(told) == {"status": "deferred", "item_id": "i1"}
        (event,) = told.events
        assert isinstance(event, i.ItemDeferred)
        assert (event.by, event.wait_s, event.epoch) == ("agent", wait_s or None, 3)
        assert (event.decision.type, event.decision.reasoning) == ("defer", "later")

    @pytest.mark.parametrize("item_id", ["i2", "i3"])
    def test_what_is_protected(self, item_id: str) -> None:
        """Is named as that."""
        situation = mailbox()
        told = deferred(owned(situation), situation.item(item_id), DeferItem(item_id, "x"))
        assert told.failed
        assert read(told)["status"] == "error"
        assert "protected" in read(told)["error"]
        assert "human_chat" in read(told)["error"]

    def test_what_is_not_there_or_does_not_wait(self) -> None:
        """Or belongs to somebody else."""
        situation = mailbox()
        item = situation.item("i1")
        for row in (None, at_work(item), replace(item, agent_id="bob")):
            told = deferred(owned(situation), row, DeferItem("i1", "x"))
            assert (read(told)["status"], told.events) == ("error", ())


class TestDropping:
    """Discarding."""

    def test_175_a_waiting_item(self) -> None:
        """With a decision that says why."""
        situation = mailbox()
        told = dropped(owned(situation), situation.item("i1"), DropItem("i1", "stale"))
        assert read(told) == {"status": "dropped", "item_id": "i1"}
        (event,) = told.events
        assert isinstance(event, i.ItemDropped)
        assert (event.reason, event.decision.type) == ("stale", "drop")

    def test_175_what_is_over_or_unknown(self) -> None:
        """Needs no more, and gets no event."""
        situation = mailbox()
        over = replace(situation.item("i1"), phase=Dropped("stale", BEGAN))
        for row in (None, over, replace(situation.item("i1"), agent_id="bob")):
            told = dropped(owned(situation), row, DropItem("i1", "x"))
            assert read(told)["status"] == "already_resolved"
            assert read(told)["note"]
            assert (told.events, told.failed) == ((), False)

    def test_175_what_is_refused(self) -> None:
        """At work (ruling 42), set aside, or protected."""
        situation = mailbox()
        item = situation.item("i1")
        aside = replace(item, phase=Queued(turn_id="trn_0", session_id="ses_0"))
        for row in (at_work(item), aside, situation.item("i2"), situation.item("i3")):
            told = dropped(owned(situation), row, DropItem(row.id, "x"))
            assert (read(told)["status"], told.events, told.failed) == ("error", (), True)


class TestPrioritizing:
    """Another priority."""

    @pytest.mark.parametrize(("wanted", "given"), [(0, 0), (1.7, 2), (0.5, 1), (4, 4)])
    def test_176_a_number(self, wanted: float, given: int) -> None:
        """Is rounded."""
        situation = mailbox()
        told = prioritized(owned(situation), situation.item("i1"), PrioritizeItem("i1", wanted))
        assert read(told) == {"status": "reprioritized", "item_id": "i1", "priority": given}
        (event,) = told.events
        assert event == i.ItemReprioritized(
            agent_id=AGENT, item_id="i1", priority=given, by=f"agent:{AGENT}"
        )

    @pytest.mark.parametrize("wanted", [5, -1, 4.2, "high", True, None, float("nan")])
    def test_176_anything_else(self, wanted: object) -> None:
        """Is answered with what is allowed."""
        situation = mailbox()
        told = prioritized(owned(situation), situation.item("i1"), PrioritizeItem("i1", wanted))
        assert "between 0 and 4" in read(told)["error"]
        assert told.events == ()

    def test_176_what_is_refused(self) -> None:
        """What people wrote keeps its place."""
        situation = mailbox()
        for row in (situation.item("i2"), at_work(situation.item("i1")), None):
            told = prioritized(owned(situation), row, PrioritizeItem("i1", 3))
            assert read(told)["status"] == "error"


class TestWhoMayUseThem:
    """2.9: looking, putting off and discarding in all that focuses; the rest in deliberation."""

    @pytest.mark.parametrize("scenario", SCENARIOS)
    def test_by_scenario(self, scenario: str) -> None:
        """A judge has none."""
        there = {tool.name for tool in Tools(test_tools=False).for_context(scenario, None)}
        for name in ("check_mailbox", "defer_mailbox_item", "drop_mailbox_item"):
            assert (name in there) == (scenario != "judge")
        for name in ("prioritize_mailbox_item", "complete_deliberation"):
            assert (name in there) == (scenario == "deliberation")

    def test_a_deliberation_has_only_what_is_meant_for_it(self) -> None:
        """Not even the test tools: what has an effect belongs to the turn of an item."""
        there = {tool.name for tool in Tools(test_tools=True).for_context("deliberation", None)}
        assert not {"sleep", "request_user_approval", "escalate", "test_append"} & there
        assert {"notify_user", "update_working_memory"} <= there

    def test_a_deliberation_can_always_end(self) -> None:
        """Whatever the agent's own list leaves out."""
        offered = Tools(test_tools=False).for_context("deliberation", ("check_mailbox",))
        assert [tool.name for tool in offered] == ["check_mailbox", "complete_deliberation"]
