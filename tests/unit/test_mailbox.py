"""What a mailbox accepts, and what becomes of an item that comes back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given as example
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.support.spec import AGENT, Situation, accepted, given
from undivided.domain.errors import Full, Invalid, NotFound, TooLarge
from undivided.domain.events.agents import AgentDeleted
from undivided.domain.events.items import Payload, RequeueReason
from undivided.domain.mailbox import (
    CONTENT_LIMIT,
    Accept,
    GiveUp,
    Retry,
    accept,
    after_setback,
    summary_of,
)
from undivided.domain.merging import Told
from undivided.domain.policy import DEFAULT_POLICY, Policy
from undivided.domain.state.item import Tries

REASONS: tuple[RequeueReason, ...] = ("empty_reply", "failed", "timed_out")


def accepting(
    *commands: Accept,
) -> Callable[[Situation], tuple[Told, ...]]:
    return lambda now: accept(now.agent, commands)


def stimulus(item_id: str = "i1", kind: str = "human_chat", **fields: Any) -> Accept:
    payload = fields.pop("payload", Payload(f"content of {item_id}"))
    return Accept(item_id=item_id, source_type=kind, payload=payload, **fields)


class TestAccepting:
    """All of it in order, or none."""

    def test_an_item_gets_the_next_place_and_the_priority_of_its_type(self) -> None:
        """FIFO within a priority, by the place that an item keeps for ever."""
        given(accepted("i1")).when(accepting(stimulus("i2", "heartbeat"))).then(
            accepted("i2", "heartbeat", priority=3)
        )

    def test_a_given_priority_wins(self) -> None:
        """The producer knows better."""
        given().when(accepting(stimulus(priority=4))).then(accepted("i1", priority=4))

    def test_a_batch_keeps_its_order(self) -> None:
        """One place after the other."""
        given().when(accepting(stimulus("i1"), stimulus("i2"))).then(accepted("i1"), accepted("i2"))

    def test_nothing_is_accepted_for_nothing(self) -> None:
        """An empty batch is a legal one."""
        given().when(accepting()).nothing()

    def test_an_unknown_type_is_refused(self) -> None:
        """The sentence lists those there are."""
        given().when(accepting(stimulus(kind="x"))).refused(Invalid)

    def test_a_priority_that_is_none_is_refused(self) -> None:
        """0 to 4."""
        for priority in (-1, 5):
            given().when(accepting(stimulus(priority=priority))).refused(Invalid)

    def test_content_has_a_limit(self) -> None:
        """The limit itself is taken."""
        fits = stimulus(payload=Payload("x" * CONTENT_LIMIT))
        assert accept(given().agent, (fits,))
        long = stimulus(payload=Payload("x" * (CONTENT_LIMIT + 1)))
        given().when(accepting(long)).refused(TooLarge, "too_large")

    def test_a_full_mailbox_takes_nothing(self) -> None:
        """And none of a batch that does not fit whole."""
        full = given(accepted("i1"), mailboxCapacity=2)
        assert accept(full.agent, (stimulus("i2"),))
        full.when(accepting(stimulus("i2"), stimulus("i3"))).refused(Full, "mailbox_full")

    def test_a_deleted_agent_is_not_there(self) -> None:
        """Whatever is sent to it."""
        given(AgentDeleted(agent_id=AGENT)).when(accepting(stimulus())).refused(NotFound)

    def test_one_line_says_what_it_is_about(self) -> None:
        """Its own summary, or the beginning of what it says."""
        assert summary_of(Payload("content", "summary")) == "summary"
        assert summary_of(Payload("x" * 200)) == "x" * 100


class TestSetbacks:
    """Each kind has a bound of its own, and all together have one."""

    def test_an_empty_reply_is_asked_again_at_once_twice(self) -> None:
        """item_max_retries."""
        tries = [Tries(empty_replies=n) for n in range(3)]
        assert [after_setback(DEFAULT_POLICY, one, "empty_reply") for one in tries] == [
            Retry(0), Retry(0), GiveUp("item_max_retries"),
        ]  # fmt: skip

    def test_failures_are_spaced(self) -> None:
        """1 s, 5 s, 30 s, 2 m, 10 m, and the last one again."""
        tries = [Tries(failures=n) for n in range(8)]
        assert [after_setback(DEFAULT_POLICY, one, "failed") for one in tries] == [
            *(Retry(s) for s in (1, 5, 30, 120, 600, 600, 600)), GiveUp("max_delivery_attempts"),
        ]  # fmt: skip

    def test_a_backstop_has_its_own_count(self) -> None:
        """timeout_max_retries."""
        tries = [Tries(timeouts=n) for n in range(3)]
        assert [after_setback(DEFAULT_POLICY, one, "timed_out") for one in tries] == [
            Retry(0), Retry(0), GiveUp("timeout_max_retries"),
        ]  # fmt: skip

    @example(st.builds(Tries, *[st.integers(0, 100)] * 4))
    def test_a_stop_uses_up_nothing(self, tries: Tries) -> None:
        """However often an agent was stopped in the middle of an item."""
        assert after_setback(DEFAULT_POLICY, tries, "agent_stopped") == Retry(0)
        more = replace(tries, picked=tries.picked + 100)
        for reason in REASONS:
            assert after_setback(DEFAULT_POLICY, tries, reason) == after_setback(
                DEFAULT_POLICY, more, reason
            )

    @example(
        st.lists(st.sampled_from(REASONS), min_size=200, max_size=200),
        st.integers(1, 20), st.integers(0, 20), st.integers(0, 20),
    )  # fmt: skip
    def test_no_item_comes_back_for_ever(
        self, reasons: list[RequeueReason], attempts: int, empty: int, timeouts: int
    ) -> None:
        """Whatever befalls it, in whatever order: at most max_delivery_attempts attempts."""
        policy = Policy(
            max_delivery_attempts=attempts, item_max_retries=empty, timeout_max_retries=timeouts
        )
        tries = Tries()
        for reason in reasons:
            tries = replace(tries, picked=tries.picked + 1)
            if isinstance(after_setback(policy, tries, reason), GiveUp):
                break
            tries = {
                "empty_reply": replace(tries, empty_replies=tries.empty_replies + 1),
                "failed": replace(tries, failures=tries.failures + 1),
                "timed_out": replace(tries, timeouts=tries.timeouts + 1),
            }[reason]
        assert tries.picked <= attempts

    @example(st.sampled_from(REASONS), st.lists(st.sampled_from(REASONS), max_size=6))
    def test_every_kind_counts_for_itself(
        self, reason: RequeueReason, others: list[RequeueReason]
    ) -> None:
        """Below the common bound, setbacks of other kinds change nothing for this one."""
        roomy = Policy(max_delivery_attempts=100)
        tries = Tries(
            empty_replies=others.count("empty_reply") if reason != "empty_reply" else 1,
            failures=others.count("failed") if reason != "failed" else 1,
            timeouts=others.count("timed_out") if reason != "timed_out" else 1,
        )
        alone = Tries(
            empty_replies=int(reason == "empty_reply"), failures=int(reason == "failed"),
            timeouts=int(reason == "timed_out"),
        )  # fmt: skip
        assert after_setback(roomy, tries, reason) == after_setback(roomy, alone, reason)
