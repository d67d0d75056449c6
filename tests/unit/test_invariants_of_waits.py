"""What brings a turn back that was set aside; what a closed session and a read notice stay."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.unit.test_invariants import GOOD, chosen, rules, without
from tests.unit.test_invariants_of_turns import PICKED, STARTED, told
from undivided.domain.decisions import Decision
from undivided.domain.dialogue import Usage
from undivided.domain.events import flights as f
from undivided.domain.events import items as i
from undivided.domain.events import people as p
from undivided.domain.events import sessions as s
from undivided.domain.events.catalogue import Event
from undivided.domain.invariants import findings_of
from undivided.domain.outcomes import Cancelled
from undivided.domain.placed import Placed

WHY = Decision("dec_2", "preempt", "R1", "", {}, 1)
BEGUN: list[Event] = [PICKED, STARTED]
PREEMPTED = s.TurnPreempted(turn_id="trn_1", by="mbx_2", epoch=1)
PUT_OFF = i.ItemDeferred(
    agent_id="a", item_id="mbx_1", epoch=1, by="preempted", decision=WHY, behind="mbx_2",
    turn_id="trn_1", session_id="ses_a",
)  # fmt: skip
MERGED = i.ItemMerged(agent_id="a", item_id="mbx_1", into="mbx_3", priority=1, decision=WHY)
BACK = i.ItemResurfaced(agent_id="a", item_id="mbx_1", cause="preemptor_done")
RESUMED = i.ItemResumed(
    agent_id="a", item_id="mbx_1", turn_id="trn_1", session_id="ses_a", epoch=1, decision=WHY
)


def found(*appends: list[Event]) -> set[str]:
    """The rules of 8 and 11 that a history breaks; those of others do not matter here."""
    return {rule for number, rule in rules(findings_of(told(*appends))) if number in (8, 11)}


class TestSetAsideReturns:
    """11: a turn that is set aside comes back, with its items and by them."""

    def test_its_items_are_put_off_with_it(self) -> None:
        """In the same append."""
        assert found(BEGUN, [PUT_OFF, PREEMPTED]) == set()
        assert found(BEGUN, [PREEMPTED]) == {"set_aside_alone"}
        assert found(BEGUN, [PUT_OFF], [PREEMPTED]) == {"set_aside_alone"}

    @pytest.mark.parametrize("taken", [
        MERGED,
        i.ItemDropped(agent_id="a", item_id="mbx_1", reason="stale", decision=WHY),
        i.ItemExpired(agent_id="a", item_id="mbx_1", notice_id="ntf_1", decision=WHY),
        i.ItemCancelled(agent_id="a", item_id="mbx_1", turn_id=None, by="eve", decision=WHY),
        replace(PICKED, turn_id="trn_2"),
    ])  # fmt: skip
    def test_nobody_takes_its_items(self, taken: Event) -> None:
        """Else nothing would ever bring it back; once it is back, they are its own to end."""
        assert "set_aside_for_ever" in found(BEGUN, [PUT_OFF, PREEMPTED], [BACK], [taken])
        back: Event = s.TurnResumed(turn_id="trn_1", cause="preempted", epoch=1)
        goes_on = found(BEGUN, [PUT_OFF, PREEMPTED], [BACK], [RESUMED, back], [taken])
        assert "set_aside_for_ever" not in goes_on

    def test_it_may_end_with_its_items(self) -> None:
        """As when its agent is deleted."""
        ended: list[Event] = [
            i.ItemCancelled(agent_id="a", item_id="mbx_1", turn_id="trn_1", by="x", decision=WHY),
            s.TurnEnded(
                turn_id="trn_1", session_id="ses_a", agent_id="a", item_ids=("mbx_1",),
                outcome=Cancelled("x"), usage=Usage(), responses=0, tool_calls=0, epoch=1,
            ),
        ]  # fmt: skip
        assert found(BEGUN, [PUT_OFF, PREEMPTED], ended) == set()

    def test_what_waits_for_an_answer_has_its_time(self) -> None:
        """Nobody may ever answer."""
        waiting = replace(PUT_OFF, waits=True, behind=None, wait_s=60.0)
        assert found(BEGUN, [waiting, PREEMPTED]) == set()
        for_ever = replace(waiting, wait_s=None)
        assert found(BEGUN, [for_ever, PREEMPTED]) == {"put_off_for_ever"}

    @given(GOOD, st.data())
    def test_the_agent_knows_that_its_turn_waits(
        self, history: list[Placed], data: st.DataObject
    ) -> None:
        """Whoever looks for waits that are over looks at the agents."""
        index = chosen(data, history, lambda event: isinstance(event, f.FocusSuspended))
        assert (11, "waits_unknown") in rules(findings_of(without(history, index)))


OPENED = s.SessionOpened(session_id="ses_a", agent_id="a")
ARCHIVED = s.SessionArchived(session_id="ses_a")
DELETED = s.SessionDeleted(session_id="ses_a")
SAID = s.MessagePosted(
    session_id="ses_a", agent_id="a", turn_id="trn_9", source="notify_user", content="hi",
    priority="normal",
)  # fmt: skip
NOTE = p.NotificationPosted(
    notification_id="ntf_1", user_id="owner", kind="agent_notification", title="", body="",
    priority="normal", action=p.Action(),
)  # fmt: skip
READ = p.NotificationRead(notification_id="ntf_1", user_id="owner", by="ann")
ALL_READ = p.NotificationsAllRead(user_id="owner", notification_ids=("ntf_1",), by="ann")


class TestWhatIsOver:
    """8: what is over never changes again."""

    @pytest.mark.parametrize("late", [STARTED, SAID, ARCHIVED])
    def test_a_closed_session_takes_nothing(self, late: Event) -> None:
        """Whoever has something to say there says it elsewhere."""
        assert found([OPENED], [ARCHIVED]) == set()
        assert found([OPENED], [ARCHIVED], [late]) == {"changed_when_over"}

    def test_a_deleted_session_is_gone(self) -> None:
        """It can be deleted once it is archived, and not the other way round."""
        assert found([OPENED], [ARCHIVED], [DELETED]) == set()
        assert found([OPENED], [DELETED], [ARCHIVED]) == {"changed_when_over"}

    @pytest.mark.parametrize("again", [READ, ALL_READ])
    def test_a_notification_is_read_once(self, again: Event) -> None:
        """Who has read it first is not read over."""
        assert found([NOTE], [again]) == set()
        assert found([NOTE], [READ], [again]) == {"changed_when_over"}
