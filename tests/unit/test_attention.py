"""What an agent turns to, and whether it goes on with it."""

from __future__ import annotations

from hypothesis import given as example
from hypothesis import strategies as st

from tests.support.spec import AGENT, SESSION, Situation, accepted, acquired, given, released
from undivided.domain.attention import (
    LOSERS_NAMED,
    Begin,
    Carry,
    GoOn,
    Halt,
    Leave,
    Rest,
    Taken,
    Wake,
    at_yield_point,
    input_of,
    picked,
    session_for,
    what_is_due,
)
from undivided.domain.decisions import Decision
from undivided.domain.events import agents as a
from undivided.domain.events import flights as f
from undivided.domain.events import items as i
from undivided.domain.waits import Sleep
from undivided.domain.waking import told_after_wait

TURN = "trn_1"


def due(now: Situation) -> object:
    return what_is_due(now.view, now.agent)


def pick(item_id: str = "i1", epoch: int = 1) -> i.ItemPicked:
    decision = Decision("dec_1", "pick", "priority_fifo", "", {}, 1)
    return i.ItemPicked(
        agent_id=AGENT, item_id=item_id, turn_id=TURN, session_id=SESSION, epoch=epoch,
        attempt=1, decision=decision,
    )  # fmt: skip


def suspended(seconds: float = 60) -> f.FocusSuspended:
    return f.FocusSuspended(
        agent_id=AGENT, turn_id=TURN, epoch=1, wait=Sleep(seconds), wait_s=seconds
    )


STOP = f.StopRequested(agent_id=AGENT, turn_id=TURN, by="bob")
AT_WORK = (accepted("i1"), acquired(), pick())
WAITING = (*AT_WORK, suspended(), released(1, "suspended"))


class TestIdle:
    """Nothing is in focus: the best of what waits is next."""

    def test_there_is_nothing(self) -> None:
        """Rest is an answer."""
        given().when(due).then(Rest())

    def test_the_lower_number_wins(self) -> None:
        """Rule priority_fifo, with the losers named."""
        now = given(accepted("i1", "heartbeat", 3), accepted("i2"), accepted("i3", "mention", 1))
        now.when(due).then(Begin(now.item("i2"), (now.item("i3"), now.item("i1"))))

    def test_the_older_one_wins_within_a_priority(self) -> None:
        """By original sequence, whatever happened to it since."""
        now = given(accepted("i1"), accepted("i2"))
        now.when(due).then(Begin(now.item("i1"), (now.item("i2"),)))

    def test_an_item_is_not_picked_before_its_time(self) -> None:
        """What waits out a backoff does not keep others waiting."""
        decision = Decision("dec_2", "requeue", "failed", "", {}, 1)
        back = i.ItemRequeued(
            agent_id=AGENT, item_id="i1", turn_id=TURN, epoch=1, reason="failed", wait_s=5,
            decision=decision,
        )  # fmt: skip
        now = given(*AT_WORK, accepted("i2"), back, released(1, "done"))
        now.when(due).then(Begin(now.item("i2"), ()))
        now.after(5).when(due).then(Begin(now.item("i1"), (now.item("i2"),)))

    def test_an_unknown_type_is_left_alone(self) -> None:
        """C32: a newer release knows what to do with it."""
        now = given(accepted("i1", "from_the_future"))
        now.when(due).then(Rest())

    def test_an_agent_that_is_not_started_picks_nothing(self) -> None:
        """Paused, stopped, deleted."""
        for ending in (a.AgentPaused, a.AgentStopped, a.AgentDeleted):
            given(accepted("i1"), ending(agent_id=AGENT)).when(due).then(Rest())

    @example(st.lists(st.integers(0, 4), min_size=1, max_size=30))
    def test_nobody_overtakes(self, priorities: list[int]) -> None:
        """The one that is picked has the lowest number, and no older one of that number waits."""
        now = given(*(accepted(f"i{n}", priority=p) for n, p in enumerate(priorities, start=1)))
        answer = what_is_due(now.view, now.agent)
        assert isinstance(answer, Begin)
        assert (answer.item.priority, answer.item.seq) == min(
            (one.priority, one.seq) for one in now.items
        )
        assert {answer.item.id, *(one.id for one in answer.over)} == {one.id for one in now.items}


class TestFocused:
    """A turn is at work, and somebody new holds the agent: it goes on with that turn."""

    def test_its_worker_was_lost(self) -> None:
        """The flight was never released."""
        given(*AT_WORK).when(due).then(Carry(TURN, SESSION, "orphaned"))

    def test_its_worker_yielded(self) -> None:
        """It was."""
        given(*AT_WORK, released()).when(due).then(Carry(TURN, SESSION, "yielded"))

    def test_whatever_else_waits(self) -> None:
        """Attention is undivided."""
        given(*AT_WORK, accepted("i2")).when(due).then(Carry(TURN, SESSION, "orphaned"))


class TestSuspended:
    """A turn waits, and something may end the wait."""

    def test_nothing_does_yet(self) -> None:
        """The agent rests."""
        given(*WAITING).after(59).when(due).then(Rest())

    def test_its_time_is_over(self) -> None:
        """To the instant."""
        given(*WAITING).after(60).when(due).then(Wake(TURN, SESSION, "waited"))

    def test_something_new_that_wakes(self) -> None:
        """The kind of thing is named, what it says is not."""
        answer = what_is_due(given(*WAITING, accepted("i2")).view, given(*WAITING).agent)
        assert answer == Wake(TURN, SESSION, "woken", "human_chat")
        assert "content of i2" not in told_after_wait(answer)

    def test_something_new_that_does_not_wake(self) -> None:
        """It waits for the end of the turn."""
        given(*WAITING, accepted("i2", "task_notification")).when(due).then(Rest())

    def test_a_stop_comes_before_everything(self) -> None:
        """Also when the time is over."""
        given(*WAITING, STOP, accepted("i2")).after(60).when(due).then(
            Wake(TURN, SESSION, "stopped")
        )


class TestYieldPoint:
    """Between two steps."""

    def test_the_turn_goes_on(self) -> None:
        """Nobody wants anything."""
        given(*AT_WORK).when(lambda now: at_yield_point(now.agent, TURN, False)).then(GoOn())

    def test_the_worker_leaves(self) -> None:
        """Another one goes on."""
        given(*AT_WORK).when(lambda now: at_yield_point(now.agent, TURN, True)).then(Leave())

    def test_a_stop_wins(self) -> None:
        """Even over leaving."""
        given(*AT_WORK, STOP).when(lambda now: at_yield_point(now.agent, TURN, True)).then(
            Halt("bob")
        )

    def test_a_stop_of_another_turn_is_none(self) -> None:
        """It is about the turn in focus."""
        given(*AT_WORK, STOP).when(lambda now: at_yield_point(now.agent, "trn_2", False)).then(
            GoOn()
        )


class TestPicking:
    """A pick is a decision with its inputs."""

    def test_it_says_what_it_saw(self) -> None:
        """Rule, inputs, losers, policy version."""
        now = given(*(accepted(f"i{n}") for n in range(1, 15)))
        begin = what_is_due(now.view, now.agent)
        assert isinstance(begin, Begin)
        (event,) = picked(now.agent, begin, SESSION, Taken(TURN, ("dec_9",), 3))
        assert (event.item_id, event.turn_id, event.epoch, event.attempt) == ("i1", TURN, 3, 1)
        decision = event.decision
        assert (decision.rule, decision.policy_version) == ("priority_fifo", 1)
        assert decision.losers == tuple(f"i{n}" for n in range(2, 2 + LOSERS_NAMED))
        assert decision.inputs["waiting"] == 14

    def test_a_conversation_has_one_session(self) -> None:
        """Two messages, one transcript; a session that is named is taken."""
        now = given(accepted("i1"), accepted("i2"), accepted("i3", session_id="mine"))
        first, second, third = (session_for(now.agent, item) for item in now.items)
        assert first == second == SESSION
        assert third == "mine"

    def test_the_input_is_what_was_said(self) -> None:
        """To the letter."""
        begin = Begin(given(accepted("i1")).item("i1"), ())
        assert input_of(begin, {"i1": ()}) == "content of i1"
