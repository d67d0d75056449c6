"""What turns may be shown, what stays as it is once it is over, and what can end a wait."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.support.events import BEGAN
from tests.support.histories import rewritten
from tests.unit.test_invariants import GOOD, again, changed, chosen, rules, without
from undivided.domain.coordinates import Coordinate
from undivided.domain.decisions import Decision
from undivided.domain.events import callbacks as c
from undivided.domain.events import flights as f
from undivided.domain.events import items as i
from undivided.domain.events import people as p
from undivided.domain.events import sessions as s
from undivided.domain.events.catalogue import Event
from undivided.domain.invariants import findings_of
from undivided.domain.placed import Placed
from undivided.domain.recorded import Meta, Recorded
from undivided.domain.waits import Approval


class TestOwnTurnOnly:
    """4: what waits shows in no request before its own turn."""

    @given(GOOD, st.data())
    def test_a_turn_is_not_told_of_what_was_not_picked(
        self, history: list[Placed], data: st.DataObject
    ) -> None:
        """Its input is about one item more."""
        index = chosen(data, history, lambda event: isinstance(event, s.TurnStarted))
        event: Any = history[index].recorded.event
        broken = changed(history, index, item_ids=(*event.item_ids, "mbx_waiting"))
        assert (4, "told_without_pick") in rules(findings_of(broken))

    @given(GOOD, st.data())
    def test_a_turn_is_about_something(self, history: list[Placed], data: st.DataObject) -> None:
        """An item, or all that is considered."""
        index = chosen(data, history, lambda event: isinstance(event, s.TurnStarted))
        assert (4, "turn_about_nothing") in rules(findings_of(changed(history, index, item_ids=())))

    @given(GOOD, st.data())
    def test_a_pick_begins_its_turn(self, history: list[Placed], data: st.DataObject) -> None:
        """In the same append."""
        index = chosen(data, history, lambda event: isinstance(event, s.TurnStarted))
        assert (4, "picked_without_turn") in rules(findings_of(without(history, index)))

    @given(GOOD, st.data())
    def test_a_live_update_is_of_what_was_merged(
        self, history: list[Placed], data: st.DataObject
    ) -> None:
        """What waits on is not told."""
        index = chosen(data, history, lambda event: isinstance(event, s.ModelResponded))
        one = history[index]
        event: Any = one.recorded.event
        update = s.TurnUpdated(
            turn_id=event.turn_id, item_id="mbx_waiting", content="psst", epoch=event.epoch
        )
        told = Placed(one.coordinate, replace(one.recorded, event=update))
        broken = rewritten([*history[: index + 1], told, *history[index + 1 :]])
        assert (4, "updated_without_merge") in rules(findings_of(broken))


class TestTerminalStays:
    """8: what is over never changes again."""

    @given(GOOD, st.data())
    def test_no_step_comes_after_the_end_of_its_turn(
        self, history: list[Placed], data: st.DataObject
    ) -> None:
        """Nor a second end."""
        index = chosen(data, history, lambda event: isinstance(event, s.TurnEnded))
        assert (8, "changed_when_over") in rules(findings_of(again(history, index)))

    @pytest.mark.parametrize(
        "late",
        [
            p.ApprovalExpired(approval_id="apr_1", user_id="owner", agent_id="a", turn_id="trn_1"),
            p.ApprovalAnswered(
                approval_id="apr_1", user_id="owner", agent_id="a", turn_id="trn_1",
                approved=True, selected_option="", comment="", by="user",
            ),
        ],
    )  # fmt: skip
    def test_an_answer_is_the_last_word(self, late: Event) -> None:
        """Whatever comes behind it."""
        answered = replace(ANSWERED, approved=False)
        assert rules(findings_of(told([ASKED], [answered, FOCUS], [late]))) == {
            (8, "changed_when_over")
        }

    @pytest.mark.parametrize("late", ["rearmed", "resolved"])
    def test_a_callback_comes_once(self, late: str) -> None:
        """Cancelled it never comes."""
        registered = c.CallbackRegistered(
            agent_id="a", callback_id="cbk_1", type="wakeup", delivery="mailbox",
            origin_session_id="ses_a", wake_at=BEGAN,
        )  # fmt: skip
        cancelled = c.CallbackCancelled(agent_id="a", callback_id="cbk_1", by="a")
        again_: Event = c.CallbackResolved(
            agent_id="a", callback_id="cbk_1", how="fired", item_ids=()
        )
        if late == "rearmed":
            again_ = c.CallbackRearmed(
                agent_id="a", callback_id="cbk_1", wake_at=BEGAN, item_ids=()
            )
        assert rules(findings_of(told([registered], [cancelled]))) == set()
        assert rules(findings_of(told([registered], [cancelled], [again_]))) == {
            (8, "changed_when_over")
        }


ASKED = p.ApprovalRequested(
    approval_id="apr_1", user_id="owner", agent_id="a", turn_id="trn_1", call_id="call_1",
    session_id="ses_a", item_id="mbx_1", notification_id="ntf_1", title="Deploy?",
    description="", options=(), allow_freeform=True, priority="high", expires_s=None,
)  # fmt: skip
ANSWERED = p.ApprovalAnswered(
    approval_id="apr_1", user_id="owner", agent_id="a", turn_id="trn_1", approved=True,
    selected_option="", comment="", by="user",
)  # fmt: skip
FOCUS = f.FocusAnswered(
    agent_id="a", turn_id="trn_1", call_id="call_1", content="yes", item_id="mbx_1"
)
PICKED = i.ItemPicked(
    agent_id="a", item_id="mbx_1", turn_id="trn_1", session_id="ses_a", epoch=1, attempt=1,
    decision=Decision("dec_1", "pick", "r", "", {}, 1),
)  # fmt: skip
STARTED = s.TurnStarted(
    turn_id="trn_1", session_id="ses_a", agent_id="a", item_ids=("mbx_1",), scenario="chat",
    origin="human_chat", index=0, responses_before=0, input="x", epoch=1, backstop_s=60,
)  # fmt: skip
WAITS = s.TurnSuspended(
    turn_id="trn_1", call_id="call_1", wait=Approval("apr_1", 60, expires=False), wait_s=60,
    epoch=1,
)  # fmt: skip


def told(*appends: list[Event]) -> list[Placed]:
    """A history of appends, each stream of which counts for itself."""
    versions: dict[str, int] = {}
    history = []
    for txid, events in enumerate(appends, start=1):
        for position, event in enumerate(events, start=1):
            stream = type(event).__module__
            versions[stream] = versions.get(stream, 0) + 1
            one = Recorded(f"e{txid}.{position}", stream, versions[stream], event, Meta(), BEGAN)
            history.append(Placed(Coordinate(txid, 100 * txid + position), one))
    return history


class TestWaitsEnd:
    """11: a turn that waits has someone or something that can end the wait."""

    def test_somebody_was_asked(self) -> None:
        """In the same append."""
        good = told([PICKED, STARTED], [ASKED, WAITS])
        assert "nobody_was_asked" not in {rule for _, rule in rules(findings_of(good))}
        bad = told([PICKED, STARTED], [ASKED], [WAITS])
        assert (11, "nobody_was_asked") in rules(findings_of(bad))

    def test_whoever_waits_hears_the_answer(self) -> None:
        """In the append of the answer."""
        good = told([PICKED, STARTED], [ASKED, WAITS], [ANSWERED, FOCUS])
        assert "answered_but_not_told" not in {rule for _, rule in rules(findings_of(good))}
        bad = told([PICKED, STARTED], [ASKED, WAITS], [ANSWERED], [FOCUS])
        assert (11, "answered_but_not_told") in rules(findings_of(bad))

    @given(GOOD, st.data(), st.sampled_from([float("inf"), float("nan"), -1.0]))
    def test_a_wait_has_its_time(
        self, history: list[Placed], data: st.DataObject, wait_s: float
    ) -> None:
        """After which the sweep ends it."""
        index = chosen(data, history, lambda event: isinstance(event, s.TurnSuspended))
        broken = changed(history, index, wait_s=wait_s)
        assert (11, "waits_for_ever") in rules(findings_of(broken))
