"""Triage: when an agent considers all that waits, what it is told, and when that turn ends.

The numbers are those of the scenarios in the behaviour catalogue.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from tests.support import spec
from tests.support.events import BEGAN
from tests.support.spec import AGENT, SESSION, accepted
from undivided.domain.deliberation_prompt import (
    DELIBERATION_TOOLS,
    ITEMS_TOLD,
    age,
    batch_prompt,
    deliberation_prompt,
)
from undivided.domain.dialogue import ToolCall, Usage
from undivided.domain.events import items as i
from undivided.domain.events import sessions as s
from undivided.domain.events.catalogue import Event
from undivided.domain.plans import Plan
from undivided.domain.policy import DEFAULT_POLICY, adopt
from undivided.domain.state.item import ItemRow
from undivided.domain.triage import Deliberate, Reflex, called_away, tier
from undivided.domain.turn import AskModel, Finish, RunTool, TurnState, evolve, next_step

TURN = "trn_d"


def item(kind: str = "system_event", priority: int = 2, item_id: str = "i1", **extra: Any) -> Any:
    """The acceptance of one item."""
    return accepted(item_id, kind, priority, payload=i.Payload(f"about {item_id}", extra=extra))


def row(priority: int, kind: str = "system_event", item_id: str = "i1") -> ItemRow:
    return spec.given(item(kind, priority, item_id)).item(item_id)


class TestTier:
    """Whether the head is picked at once."""

    def test_151_what_waits_is_plainly_less_urgent(self) -> None:
        """Head at 1, one at 2."""
        assert tier(row(1), (row(2),), DEFAULT_POLICY, True) == Reflex("clear_priority")

    def test_152_something_as_urgent_waits(self) -> None:
        """Head at 2, one at 2."""
        assert tier(row(2), (row(2),), DEFAULT_POLICY, True) == Deliberate("ambiguous_priority")

    def test_153_a_person_does_not_wait_for_it(self) -> None:
        """However much there is."""
        head = row(0, "human_chat")
        assert tier(head, (row(2),) * 5, DEFAULT_POLICY, True) == Reflex("person_first")

    def test_nothing_else_waits(self) -> None:
        """There is nothing to choose."""
        assert tier(row(2), (), DEFAULT_POLICY, True) == Reflex("alone")

    @pytest.mark.parametrize(
        ("rest", "expected"), [(1, Reflex("clear_priority")), (2, Deliberate("backlog"))]
    )
    def test_the_backlog_is_counted_without_the_head(self, rest: int, expected: object) -> None:
        """Ruling 14: and comes before clear priorities."""
        assert tier(row(1), (row(4),) * rest, DEFAULT_POLICY, True) == expected

    def test_the_threshold_is_a_policy(self) -> None:
        """And so is the whole of it."""
        patient = adopt(DEFAULT_POLICY, {"triageBacklogThreshold": 5})
        assert tier(row(1), (row(4),) * 4, patient, True) == Reflex("clear_priority")
        off = adopt(DEFAULT_POLICY, {"triage": "off"})
        assert tier(row(1), (row(1),) * 9, off, True) == Reflex("no_deliberation")
        assert tier(row(1), (row(1),) * 9, DEFAULT_POLICY, False) == Reflex("no_deliberation")

    def test_163_only_a_person_calls_away(self) -> None:
        """One who wrote since; a peer does not."""
        considered, person = ("i1",), row(0, "human_chat", "i9")
        assert called_away((row(2, "a2a_message", "i8"), person), considered) == person
        assert called_away((row(2, "a2a_message", "i8"),), considered) is None
        assert called_away((person,), ("i1", "i9")) is None


class TestTheTurn:
    """A deliberation ends once it has its plan."""

    def state(self, *events: Event) -> TurnState:
        started = s.TurnStarted(
            turn_id=TURN, session_id=SESSION, agent_id=AGENT, item_ids=(),
            scenario="deliberation", origin="deliberation", index=0, responses_before=0,
            input="choose", epoch=1, backstop_s=60,
        )  # fmt: skip
        state = evolve(None, started)
        for event in events:
            state = evolve(state, event)
        assert state is not None
        return state

    def test_it_finishes_after_its_last_call(self) -> None:
        """What else the response asked for is run first."""
        calls = (ToolCall("c1", "complete_deliberation", {}), ToolCall("c2", "check_mailbox", {}))
        asked = s.ModelResponded(
            turn_id=TURN, step=0, text="", calls=calls, usage=Usage(), model="m", epoch=1
        )
        plan = s.DeliberationPlanned(
            turn_id=TURN, plan=Plan(process=("i1",), reasoning="first"), epoch=1
        )
        results = [
            s.ToolCallFinished(
                turn_id=TURN, call_id=one.id, tool=one.tool, resolution="returned",
                content="recorded", epoch=1,
            )
            for one in calls
        ]  # fmt: skip
        halfway = self.state(asked, plan, results[0])
        assert next_step(halfway, 200) == RunTool(calls[1], again=False)
        assert next_step(self.state(asked, plan, *results), 200) == Finish("first")
        assert next_step(self.state(asked, *results), 200) == AskModel(1)


class TestPrompts:
    """What the agent is told."""

    def test_every_item_is_listed(self) -> None:
        """With what there is to know about it."""
        one = accepted("i1", "task_comment", 1, payload=i.Payload("x" * 4000, "look", "t1"))
        item_row = replace(
            spec.given(one).item("i1"), sender=i.Sender("bob", "Bob", "user"), merged=0
        )
        text = deliberation_prompt((item_row,), {}, BEGAN + timedelta(seconds=90))
        assert text.startswith("[DELIBERATION MODE]\nI have 1 items")
        heading = "## i1\ntype task_comment, priority high, age 1.5min, task t1, from Bob\nlook\n"
        assert heading + "x" * 3000 in text
        assert "x" * 3001 not in text

    def test_at_most_fifty(self) -> None:
        """More are not considered."""
        rows = tuple(replace(row(2), id=f"i{n}") for n in range(60))
        assert deliberation_prompt(rows, {}, BEGAN).count("\n## ") == ITEMS_TOLD

    @pytest.mark.parametrize(
        ("seconds", "told"), [(-1, "0.0s"), (59.9, "59.9s"), (60, "1.0min"), (5400, "1.5h")]
    )
    def test_age(self, seconds: float, told: str) -> None:
        """With one decimal."""
        assert age(seconds) == told

    def test_160_a_batch_is_composed(self) -> None:
        """A header with the count and the context, a rule, a block an item."""
        rows = tuple(row(2, item_id=f"i{n}") for n in (1, 2, 3))
        first, *blocks = batch_prompt(rows, {}, "all about x").split("\n\n---\n\n")
        assert first == "[BATCH] 3 items, handled together.\nall about x"
        assert blocks[1] == "### 2. system_event: about i2\nabout i2"
        assert len(blocks) == 3
        assert "Handle all of them" in batch_prompt(rows, {}, "")

    def test_heavy_tools_are_not_for_deliberation(self) -> None:
        """They belong to the turn that handles an item."""
        heavy = {"task_create", "task_update", "requirement_propose", "sleep", "delegate"}
        assert not heavy & DELIBERATION_TOOLS
        assert "complete_deliberation" in DELIBERATION_TOOLS
