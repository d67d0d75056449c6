"""Interrupt rules: what a waiting item does to the turn at work.

The numbers are those of the scenarios in the behaviour catalogue; where a ruling changed a value,
the docstring says which.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import spec
from undivided.domain.attention import Halt, at_yield_point
from undivided.domain.decisions import Decision
from undivided.domain.events.flights import StopRequested
from undivided.domain.events.items import ItemPicked, Payload, Sender
from undivided.domain.interrupts import (
    OTHERWISE,
    RULES,
    Pair,
    Ruling,
    Verdict,
    heuristic,
    honoured,
    judged,
    live_update,
    skips_rest,
    weigh,
)
from undivided.domain.judging import verdict
from undivided.domain.policy import DEFAULT_POLICY, adopt
from undivided.domain.state.item import ItemRow, Queued, Tries
from undivided.domain.stimuli import REGISTRY

HERE = "ses_ada"


def item(source_type: str, priority: int | None = None, **given: Any) -> ItemRow:
    """An item as it waits; `given`: task, requirement, sender, role, delivery, session."""
    kind = REGISTRY[source_type]
    return ItemRow(
        id=given.get("id", "mbx_1"), agent_id="ada", source_type=source_type,
        category=kind.category, priority=kind.priority if priority is None else priority, seq=1,
        delivery=given.get("delivery", "queue"), session_id=given.get("session"),
        payload=Payload(
            "content", task_id=given.get("task"), requirement_id=given.get("requirement")
        ),
        sender=Sender(given.get("sender"), None, given.get("role", kind.sender)), tries=Tries(),
        phase=Queued(), queued_at=datetime(2026, 12, 1, tzinfo=UTC), accepted_by="e1",
        correlation="e1",
    )  # fmt: skip


def pair(focus: ItemRow, new: ItemRow, **policy: Any) -> Pair:
    """Both in the same session, unless the new one names another."""
    wanted = adopt(DEFAULT_POLICY, policy)
    return Pair.of((focus, HERE), (new, new.session_id or HERE), wanted)


def ruled(focus: ItemRow, new: ItemRow, **policy: Any) -> tuple[Verdict, str]:
    """What the rules say about a pair."""
    ruling = heuristic(pair(focus, new, **policy))
    return ruling.verdict, ruling.rule


class TestPeople:
    """A person comes first, and is not cut off by another."""

    def test_088_a_person_preempts_background_work(self) -> None:
        """R1."""
        assert ruled(item("heartbeat"), item("human_chat")) == ("preempt", "R1")

    def test_089_unknown_persons_do_not_interrupt_each_other(self) -> None:
        """No sender ids."""
        assert ruled(item("human_chat"), item("human_chat"))[0] == "continue"

    @pytest.mark.parametrize(
        ("session", "expected"), [(HERE, ("merge", "R0a")), ("s2", ("continue", "R0b"))]
    )
    def test_091_the_same_person_again(self, session: str, expected: tuple[str, str]) -> None:
        """Merged in the same conversation only (ruling 21: unknown means the direct chat)."""
        new = item("human_chat", sender="ada", session=session)
        assert ruled(item("human_chat", sender="ada"), new) == expected

    def test_093_two_persons(self) -> None:
        """Each is answered by itself."""
        focus, new = item("human_chat", sender="ada"), item("human_chat", sender="bob")
        assert ruled(focus, new)[0] == "continue"

    def test_095_a_peer_waits_for_a_person(self) -> None:
        """Also with its better rules."""
        assert ruled(item("human_chat"), item("a2a_message"))[0] == "continue"

    @pytest.mark.parametrize(
        ("wanted", "expected"),
        [("queue", "continue"), ("preempt", "preempt"), ("abort", "cancel"), ("steer", "merge")],
    )
    def test_a_policy_says_what_a_person_does(self, wanted: str, expected: str) -> None:
        """`onUserMessage` stands before the table."""
        focus = item("a2a_message")
        said = ruled(focus, item("human_chat", sender="ada"), onUserMessage=wanted)
        assert said == (expected, "on_user_message")


class TestTheSameThing:
    """What is about the work at hand joins it."""

    @pytest.mark.parametrize(("task", "expected"), [("task-1", "merge"), ("task-2", "continue")])
    def test_096_a_comment_on_the_task(self, task: str, expected: str) -> None:
        """R2."""
        assert ruled(item("a2a_message", task="task-1"), item("task_comment", task=task))[0] == (
            expected
        )

    @pytest.mark.parametrize("kind", ["requirement_update", "requirement_comment"])
    def test_097_news_of_the_requirement(self, kind: str) -> None:
        """R3."""
        focus = item("requirement_update", requirement="r1")
        assert ruled(focus, item(kind, requirement="r1")) == ("merge", "R3")

    def test_099_a_persons_comment_elsewhere(self) -> None:
        """Ruling 12: after R2 and R3."""
        new = item("task_comment", 0, task="t9", role="user")
        assert ruled(item("review_request", task="t1"), new) == ("preempt", "R1_comment")

    def test_a_steered_item_enters(self) -> None:
        """`delivery: steer`, in its own session."""
        focus = item("a2a_message")
        assert ruled(focus, item("a2a_message", delivery="steer")) == ("merge", "steered")
        elsewhere = item("a2a_message", delivery="steer", session="other")
        assert ruled(focus, elsewhere) == ("continue", "steered")


class TestPriorities:
    """The better comes first, equals wait."""

    def test_100_the_better_priority(self) -> None:
        """R6."""
        assert ruled(item("a2a_message", 2), item("a2a_message", 1)) == ("preempt", "R6")

    @pytest.mark.parametrize(("kind", "priority"), [("a2a_message", 2), ("review_request", 1)])
    def test_101_equals_wait(self, kind: str, priority: int) -> None:
        """Nothing is interrupted by its like."""
        assert ruled(item(kind, priority), item(kind, priority)) == ("continue", "otherwise")

    def test_103_being_named(self) -> None:
        """R9, for ordinary work only."""
        assert ruled(item("a2a_message", 2), item("mention", 2)) == ("preempt", "R9")
        assert ruled(item("a2a_message", 1), item("mention", 2))[0] == "continue"

    def test_104_background_work_gives_way(self) -> None:
        """R8."""
        assert ruled(item("heartbeat", 3), item("daily_report", 3)) == ("preempt", "R8")
        assert ruled(item("review_request", 1), item("system_event", 1))[0] == "continue"

    def test_105_the_worse_waits(self) -> None:
        """Whatever it is."""
        assert ruled(item("a2a_message", 1), item("heartbeat", 3))[0] == "continue"

    def test_a_peer_preempts_background_work_only(self) -> None:
        """R1.5 with ruling 13: not a review of a better priority."""
        assert ruled(item("system_event", 1), item("a2a_message", 2)) == ("preempt", "R1.5")
        assert ruled(item("review_request", 1), item("a2a_message", 2))[0] == "continue"


class TestTheJudge:
    """One word, taken for what it says or for nothing."""

    @pytest.mark.parametrize(
        ("word", "expected"),
        [(" Preempt\n", "preempt"), ("cancel", "cancel"), ("delegate", "continue"),
         ("drop", "continue"), ("{\"decision\":", "continue"), ("", "continue")],
    )  # fmt: skip
    def test_109_nonsense_means_go_on(self, word: str, expected: str) -> None:
        """Ruling 26: what is reserved is read as `continue`."""
        assert verdict(word) == expected

    @pytest.mark.parametrize("word", ["defer", "merge"])
    def test_another_persons_message_is_never_put_away(self, word: Verdict) -> None:
        """Ruling 22."""
        both = pair(item("human_chat", sender="ada"), item("human_chat", sender="bob"))
        assert judged(both, word) == Ruling("continue", "judge")
        own = pair(item("human_chat", sender="ada"), item("human_chat", sender="ada"))
        assert judged(own, word).verdict == word


class TestHonouring:
    """What an interrupted turn does."""

    def test_127_a_streamed_chat_can_be_cancelled(self) -> None:
        """And one that is not streamed cannot."""
        assert honoured("chat", True, Ruling("cancel", "judge"))
        assert not honoured("chat", False, Ruling("cancel", "judge"))

    def test_128_a_chat_is_not_preempted(self) -> None:
        """Unless the policy says so."""
        assert not honoured("chat", True, Ruling("preempt", "R6"))
        assert honoured("chat", False, Ruling("preempt", "on_user_message"))
        assert honoured("a2a", False, Ruling("preempt", "R1"))

    def test_ruling_23_the_rest_is_skipped_for_a_preemption_only(self) -> None:
        """Other mail lets a batch finish."""
        assert skips_rest((pair(item("a2a_message"), item("human_chat")),), "a2a")
        assert not skips_rest((pair(item("a2a_message"), item("heartbeat")),), "a2a")
        assert not skips_rest((), "a2a")

    def test_a_live_update_has_its_summary_first(self) -> None:
        """Where there is one."""
        plain = item("task_comment")
        assert live_update(plain, "text") == "text"


KINDS = st.sampled_from(sorted(REGISTRY))
ITEMS = st.builds(
    lambda kind, priority, sender, task, delivery: item(
        kind, priority, sender=sender, task=task, delivery=delivery
    ),
    KINDS, st.integers(0, 4), st.sampled_from([None, "ada", "bob"]),
    st.sampled_from([None, "t1", "t2"]), st.sampled_from(["queue", "steer"]),
)  # fmt: skip


@given(ITEMS, st.lists(ITEMS, max_size=5))
def test_weighing_is_total(focus: ItemRow, waiting: list[ItemRow]) -> None:
    """The first that a rule has something to say about, else the best; nobody is forgotten."""
    pairs = tuple(pair(focus, new) for new in waiting)
    weighing = weigh(pairs)
    if weighing is None:
        assert not waiting
        return
    assert len(weighing.others) == len(waiting) - 1
    if weighing.ruling.verdict == "continue":
        assert weighing.candidate is waiting[0]
    assert weighing.ruling == OTHERWISE or weighing.ruling.rule in dict(RULES)


@given(ITEMS, ITEMS)
def test_111_rules_never_end_anything_for_good(focus: ItemRow, new: ItemRow) -> None:
    """3.4: cancel, defer and drop take a judge's reading, or the agent's own policy."""
    assert heuristic(pair(focus, new)).verdict in ("continue", "preempt", "merge")


class TestStale:
    """What was asked to end is not added to."""

    def test_092_a_turn_that_is_being_cancelled_takes_nothing_in(self) -> None:
        """The yield point ends it before anything is weighed, so the message waits."""
        begun = spec.accepted("i1", "human_chat"), spec.acquired()
        asked = StopRequested(agent_id=spec.AGENT, turn_id="trn_1", by="bob")
        decision = Decision("dec_1", "pick", "priority_fifo", "", {}, 1)
        picked = ItemPicked(
            agent_id=spec.AGENT, item_id="i1", turn_id="trn_1", session_id=spec.SESSION, epoch=1,
            attempt=1, decision=decision,
        )  # fmt: skip
        now = spec.given(*begun, picked, asked, spec.accepted("i2", "human_chat"))
        assert at_yield_point(now.agent, "trn_1", False) == Halt("bob")
        assert now.agent.waiting == 1
