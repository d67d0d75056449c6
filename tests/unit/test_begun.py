"""Items whose turn has begun and was set aside: only that turn is about them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from tests.unit.test_interrupts import HERE, item, pair
from undivided.domain.decisions import Decision
from undivided.domain.dialogue import Usage
from undivided.domain.events.items import ItemDeferred, ItemResurfaced
from undivided.domain.interrupts import heuristic, judged
from undivided.domain.recorded import Meta, Recorded
from undivided.domain.state.item import Deferred, ItemRow, Queued
from undivided.domain.state.session import SessionRow
from undivided.projections import items

NOW = datetime(2026, 12, 1, tzinfo=UTC)


def begun(one: ItemRow, stop_by: str | None = None) -> ItemRow:
    """The item as it waits for its turn to go on."""
    return replace(one, phase=Queued(turn_id="trn_1", session_id=HERE, stop_by=stop_by))


def after(row: ItemRow, *events: ItemDeferred | ItemResurfaced) -> ItemRow:
    for event in events:
        folded = items.reduce(row.id, row, Recorded("e2", "agent:ada", 2, event, Meta(), NOW))
        assert folded is not None
        row = folded
    return row


PUT_OFF = ItemDeferred(
    agent_id="ada", item_id="mbx_1", epoch=1, by="agent",
    decision=Decision("dec_1", "defer", "agent_tool", "later", {}, 1),
)  # fmt: skip


class TestMergesNowhere:
    """Else its turn would be set aside for ever."""

    @pytest.mark.parametrize(
        ("kind", "about"),
        [("task_comment", {"task": "t"}), ("requirement_update", {"requirement": "r"})],
    )
    def test_by_no_rule(self, kind: str, about: dict[str, Any]) -> None:
        """However much it is about the same; it waits for its own turn."""
        focus, new = item("review_request", **about), item(kind, **about)
        assert heuristic(pair(focus, new)).verdict == "merge"
        assert heuristic(pair(focus, begun(new))).verdict == "continue"

    def test_by_no_word_of_a_judge(self) -> None:
        """What it may do is let it pass, or put it off."""
        focus, new = item("review_request"), begun(item("review_request"))
        assert judged(pair(focus, new), "merge").verdict == "continue"
        assert judged(pair(focus, new), "defer").verdict == "defer"


class TestPutOff:
    """It keeps its turn, and what was asked of that."""

    def test_a_stop_outlasts_it(self) -> None:
        """Whoever asked the turn to stop is not forgotten because its item is put off."""
        aside = after(begun(item("mention"), stop_by="eve"), PUT_OFF)
        assert isinstance(aside.phase, Deferred)
        assert (aside.phase.turn_id, aside.phase.stop_by) == ("trn_1", "eve")
        back = after(aside, ItemResurfaced(agent_id="ada", item_id="mbx_1", cause="idle"))
        assert back.phase == Queued(
            turn_id="trn_1", session_id=HERE, stop_by="eve", since=NOW
        )  # fmt: skip

    def test_an_answer_outlasts_it(self) -> None:
        """As does what its call is answered with."""
        phase = Queued(turn_id="trn_1", session_id=HERE, answer="yes")
        aside = after(replace(item("mention"), phase=phase), PUT_OFF)
        assert isinstance(aside.phase, Deferred)
        assert aside.phase.answer == "yes"


def test_turns_that_are_set_aside_keep_their_number() -> None:
    """The next turn of their session does not get it."""
    row = SessionRow(
        id="s", agent_id="ada", status="active", binding={}, active_turn=None, turns=3,
        responses=5, usage=Usage(), opened_at=NOW, changed_at=NOW, set_aside=("trn_1", "trn_2"),
    )  # fmt: skip
    assert row.next_index == 5
