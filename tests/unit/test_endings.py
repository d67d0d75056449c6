"""How a turn's end decides the fate of its item."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.spec import AGENT, SESSION, accepted, acquired, given
from undivided.domain.agents import AGENT_STOPPED
from undivided.domain.decisions import Decision
from undivided.domain.endings import OWNER, Ending, Fate, fate, fates_of, stopped_outcome
from undivided.domain.events import items as i
from undivided.domain.outcomes import (
    EMPTY_REPLY,
    MARKER_MISSING,
    Cancelled,
    Completed,
    Failed,
    Incomplete,
    Interrupted,
    Outcome,
    TimedOut,
    outcome_name,
)

TURN = "trn_1"
ENDING = Ending(TURN, 1, (("dec_2", "ntf_1"),))
EMPTY, MISSING = Incomplete(EMPTY_REPLY), Incomplete(MARKER_MISSING, "half")
BUSY, NO = Failed("rate_limited", "later", retryable=True), Failed("refused", "no", retryable=False)
SLOW = TimedOut(60)


def picked(attempt: int) -> i.ItemPicked:
    decision = Decision("dec_1", "pick", "priority_fifo", "", {}, 1)
    return i.ItemPicked(
        agent_id=AGENT, item_id="i1", turn_id=TURN, session_id=SESSION, epoch=1, attempt=attempt,
        decision=decision,
    )  # fmt: skip


def ended(*outcomes: Outcome, kind: str = "human_chat", **policy: Any) -> Fate:
    """The fate of an item after the last of `outcomes`, each of an attempt of its own."""
    history: list[Any] = [accepted("i1", kind), acquired()]
    answer: Fate | None = None
    for attempt, outcome in enumerate(outcomes, start=1):
        history.append(picked(attempt))
        now = given(*history, **policy)
        answer = fate(now.agent, now.item("i1"), outcome, ENDING)
        history.append(answer.event)
    assert answer is not None
    return answer


def rule(answer: Fate) -> str:
    decision: Decision = answer.event.decision
    return decision.rule


class TestDone:
    """The turn handled it."""

    def test_completed(self) -> None:
        """With the outcome, in the turn's own transaction."""
        answer = ended(Completed("so"))
        assert isinstance(answer.event, i.ItemCompleted)
        assert (answer.event.turn_id, answer.event.outcome) == (TURN, Completed("so"))
        assert (rule(answer), answer.notice, answer.retry_now) == ("normal", None, False)

    def test_incomplete_for_another_reason_than_an_empty_reply(self) -> None:
        """There is nothing to gain by another attempt."""
        answer = ended(Incomplete("max_tool_iterations: 200 model requests"))
        assert isinstance(answer.event, i.ItemCompleted)
        assert rule(answer) == "incomplete"

    def test_an_empty_reply_to_a_person(self) -> None:
        """A protected item is not put back: the person is told that nothing came."""
        assert isinstance(ended(EMPTY).event, i.ItemCompleted)


class TestSetBack:
    """It waits again, at its own place, with the setback counted."""

    @pytest.mark.parametrize(
        ("outcome", "reason", "wait_s"),
        [(EMPTY, "empty_reply", 0), (BUSY, "failed", 1), (SLOW, "timed_out", 0),
         (Interrupted(AGENT_STOPPED), "agent_stopped", 0)],
    )  # fmt: skip
    def test_one_more_attempt(self, outcome: Outcome, reason: str, wait_s: float) -> None:
        """At once, or after a backoff."""
        answer = ended(outcome, kind="daily_report")
        assert isinstance(answer.event, i.ItemRequeued)
        assert (answer.event.reason, answer.event.wait_s) == (reason, wait_s)
        assert answer.retry_now is (wait_s == 0)
        assert answer.event.decision.inputs["outcome"] == outcome_name(outcome)

    def test_the_last_empty_reply(self) -> None:
        """The turn was incomplete, and that is told as its outcome."""
        answer = ended(EMPTY, EMPTY, EMPTY, kind="daily_report")
        assert isinstance(answer.event, i.ItemCompleted)
        assert rule(answer) == "item_max_retries"

    def test_the_last_backstop(self) -> None:
        """The same."""
        answer = ended(SLOW, SLOW, SLOW)
        assert isinstance(answer.event, i.ItemCompleted)
        assert rule(answer) == "timeout_max_retries"

    def test_setbacks_of_different_kinds(self) -> None:
        """Each has its own count."""
        answer = ended(EMPTY, SLOW, EMPTY, SLOW, BUSY, kind="daily_report")
        assert isinstance(answer.event, i.ItemRequeued)

    def test_stops_do_not_count(self) -> None:
        """A person who stops an agent ten times has not used up a model's attempts."""
        answer = ended(*[Interrupted(AGENT_STOPPED)] * 10, BUSY)
        assert isinstance(answer.event, i.ItemRequeued)


class TestGivenUp:
    """Exactly one notice, in the same transaction."""

    def test_no_attempt_can_help(self) -> None:
        """The first failure that is final."""
        answer = ended(NO)
        assert isinstance(answer.event, i.ItemDeadLettered)
        assert answer.notice is not None
        assert answer.notice.notice_id == answer.event.notice_id == "ntf_1"
        assert (answer.notice.user_id, answer.notice.item_id) == (OWNER, "i1")
        assert "refused: no" in answer.notice.text

    @pytest.mark.parametrize("outcome", [BUSY, EMPTY, SLOW])
    def test_the_attempts_are_used_up(self, outcome: Outcome) -> None:
        """max_delivery_attempts bounds all kinds together."""
        answer = ended(BUSY, BUSY, outcome, kind="daily_report", maxDeliveryAttempts=3)
        assert isinstance(answer.event, i.ItemDeadLettered)
        assert rule(answer) == "max_delivery_attempts"


class TestTrace:
    """An item that is over without a usable answer leaves one trace of that."""

    @pytest.mark.parametrize(
        ("outcomes", "kind", "reason"),
        [
            ((MISSING,), "a2a_message", "completion marker missing from reply"),
            ((MISSING,), "human_chat", "completion marker missing from reply"),
            ((EMPTY,), "human_chat", "empty reply from LLM-invoking item"),
            ((EMPTY, EMPTY, EMPTY), "heartbeat", "empty reply from LLM-invoking item"),
            ((SLOW, SLOW, SLOW), "a2a_message", "no answer within 60 s"),
            ((NO,), "a2a_message", "refused: no"),
        ],
    )
    def test_135_136_137_exactly_one(
        self, outcomes: tuple[Outcome, ...], kind: str, reason: str
    ) -> None:
        """Beside what became of the item, in the same transaction."""
        answer = ended(*outcomes, kind=kind)
        trace = i.AgentIncomplete(
            agent_id=AGENT, item_id="i1", turn_id=TURN, source_type=kind, task_id=None,
            reason=reason,
        )  # fmt: skip
        assert answer.events == (answer.event, trace)

    @pytest.mark.parametrize(
        ("outcome", "kind"),
        [(Completed("so"), "a2a_message"), (EMPTY, "a2a_message"), (BUSY, "a2a_message"),
         (SLOW, "a2a_message"), (Cancelled("bob"), "a2a_message")],
    )  # fmt: skip
    def test_083_131_133_none(self, outcome: Outcome, kind: str) -> None:
        """It was answered, is tried again, or somebody wanted it to end."""
        assert ended(outcome, kind=kind).also == ()

    @pytest.mark.parametrize("outcome", [Completed("so"), SLOW, Cancelled("bob"), NO])
    def test_143_a_batch_shares_one_fate(self, outcome: Outcome) -> None:
        """Ruling 34: the siblings follow what the turn is about, whatever becomes of that."""
        now = given(accepted("i1", "a2a_message"), accepted("i2", "a2a_message"), acquired())
        names = (("dec_2", "ntf_1"), ("dec_3", "ntf_2"))
        both = fates_of(now.agent, (now.item("i1"), now.item("i2")), outcome,
                        Ending(TURN, 1, names))  # fmt: skip
        assert [one.event.item_id for one in both] == ["i1", "i2"]
        assert type(both[0].event) is type(both[1].event)
        assert both[0].event.decision.id != both[1].event.decision.id

    def test_each_of_a_batch_has_its_own(self) -> None:
        """They share the fate, not the trace."""
        now = given(accepted("i1", "a2a_message"), accepted("i2", "a2a_message"), acquired())
        names = (("dec_2", "ntf_1"), ("dec_3", "ntf_2"))
        both = fates_of(now.agent, (now.item("i1"), now.item("i2")), MISSING,
                        Ending(TURN, 1, names))  # fmt: skip
        traces = [event for one in both for event in one.also]
        assert [one.item_id for one in traces if isinstance(one, i.AgentIncomplete)] == ["i1", "i2"]


class TestStopped:
    """Who said stop, and what that means."""

    def test_133_by_a_person(self) -> None:
        """The item is over, and not done."""
        assert stopped_outcome("bob") == Cancelled("bob")
        answer = ended(Cancelled("bob"))
        assert isinstance(answer.event, i.ItemCancelled)
        assert (answer.event.by, answer.event.turn_id) == ("bob", TURN)

    def test_141_with_the_whole_agent(self) -> None:
        """The item waits again, as if it had not been picked."""
        assert stopped_outcome(AGENT_STOPPED) == Interrupted(AGENT_STOPPED)
