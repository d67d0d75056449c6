"""An agent's life: each command, in each phase."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given as example
from hypothesis import strategies as st

from tests.support.events import ANY_TEXT
from tests.support.spec import AGENT, SESSION, Situation, accepted, acquired, given, recorded
from undivided.domain import agents as d
from undivided.domain.decisions import Decision
from undivided.domain.errors import Invalid, Rejected
from undivided.domain.events import agents as a
from undivided.domain.events import flights as f
from undivided.domain.events import items as i
from undivided.domain.events.catalogue import Event
from undivided.domain.policy import DEFAULT_POLICY, adopt
from undivided.projections.table import fold

TURN = "trn_1"
STARTED, STOPPED, PAUSED, RESUMED, DELETED = (
    a.AgentStarted(agent_id=AGENT), a.AgentStopped(agent_id=AGENT), a.AgentPaused(agent_id=AGENT),
    a.AgentResumed(agent_id=AGENT), a.AgentDeleted(agent_id=AGENT),
)  # fmt: skip
AT_WORK: tuple[Event, ...] = (
    accepted("i1"),
    acquired(),
    i.ItemPicked(
        agent_id=AGENT, item_id="i1", turn_id=TURN, session_id=SESSION, epoch=1, attempt=1,
        decision=Decision("dec_1", "pick", "priority_fifo", "", {}, 1),
    ),
)  # fmt: skip


def starting(now: Situation) -> tuple[Event, ...]:
    return d.start(now.agent)


def stopping(now: Situation) -> tuple[Event, ...]:
    return d.stop(now.agent)


def pausing(now: Situation) -> tuple[Event, ...]:
    return d.pause(now.agent)


def deleting(now: Situation) -> tuple[Event, ...]:
    waiting = tuple(one for one in now.items if one in now.view.queue)
    return d.delete(now.agent, waiting, tuple(f"dec_{one.id}" for one in waiting))


def configuring(**wanted: object) -> Callable[[Situation], tuple[Event, ...]]:
    return lambda now: d.configure(now.agent, d.ConfigureAgent(**wanted))  # type: ignore[arg-type]


class TestCreating:
    """A name, and a policy that can be."""

    def test_an_agent_is_born_started(self) -> None:
        """With the parameters that are different laid over the base."""
        command = d.CreateAgent(agent_id=AGENT, name="Ada", policy={"intake": "drain"})
        (event,) = d.create(DEFAULT_POLICY, command)
        assert isinstance(event, a.AgentCreated)
        assert event.policy == adopt(DEFAULT_POLICY, {"intake": "drain"})
        assert given().agent.lifecycle == "started"

    @pytest.mark.parametrize("name", ["", "  ", "x" * (d.NAME_LIMIT + 1), "a\x00b", "a\ud800b"])
    def test_a_name_that_is_none(self, name: str) -> None:
        """C46: NUL and lone surrogates have no place in a name."""
        with pytest.raises(Invalid, match="name"):
            d.create(DEFAULT_POLICY, d.CreateAgent(agent_id=AGENT, name=name))

    def test_instructions_without_an_end(self) -> None:
        """They are read with every request."""
        text = "x" * (d.INSTRUCTIONS_LIMIT + 1)
        with pytest.raises(Invalid, match="instructions"):
            d.create(DEFAULT_POLICY, d.CreateAgent(agent_id=AGENT, name="Ada", instructions=text))


class TestStarted:
    """It picks up work."""

    def test_starting_it_changes_nothing(self) -> None:
        """An empty answer is a legal one."""
        given().when(starting).nothing()

    def test_pausing_leaves_the_turn_at_work_alone(self) -> None:
        """It picks nothing after it."""
        given(*AT_WORK).when(pausing).then(PAUSED)

    def test_stopping_interrupts_the_turn_at_work(self) -> None:
        """With a request that names the agent's stop."""
        given(*AT_WORK).when(stopping).then(
            STOPPED, f.StopRequested(agent_id=AGENT, turn_id=TURN, by=d.AGENT_STOPPED)
        )
        given().when(stopping).then(STOPPED)

    def test_a_stop_is_asked_for_once(self) -> None:
        """Who was first is who it was."""
        asked = f.StopRequested(agent_id=AGENT, turn_id=TURN, by="bob")
        given(*AT_WORK).when(lambda now: d.request_stop(now.agent, "bob")).then(asked)
        given(*AT_WORK, asked).when(lambda now: d.request_stop(now.agent, "eve")).nothing()
        given(*AT_WORK, asked).when(stopping).then(STOPPED)

    def test_nothing_is_stopped_where_nothing_is_at_work(self) -> None:
        """C60: the answer says so."""
        given().when(lambda now: d.request_stop(now.agent, "bob")).nothing()

    def test_it_cannot_be_deleted_at_work(self) -> None:
        """Stop it first."""
        given(*AT_WORK).when(deleting).refused(Rejected, "agent_busy")


class TestPausedAndStopped:
    """It picks nothing up."""

    def test_starting(self) -> None:
        """Each in its own words."""
        given(PAUSED).when(starting).then(RESUMED)
        given(STOPPED).when(starting).then(STARTED)

    def test_again(self) -> None:
        """What is so already is not said twice."""
        given(PAUSED).when(pausing).nothing()
        given(STOPPED).when(pausing).nothing()
        given(STOPPED).when(stopping).nothing()


class TestDeleting:
    """Everything that waits is cancelled, with a decision each."""

    def test_what_waits(self) -> None:
        """In one transaction with the end."""
        first, second, last = deleting(given(accepted("i1"), accepted("i2")))
        assert isinstance(first, i.ItemCancelled)
        assert isinstance(second, i.ItemCancelled)
        assert (first.item_id, first.turn_id, first.decision.id) == ("i1", None, "dec_i1")
        assert last == DELETED
        after = given(accepted("i1"), accepted("i2"), first, second, last)
        assert (after.agent.waiting, after.agent.lifecycle) == (0, "deleted")

    def test_twice(self) -> None:
        """It is gone already."""
        given(DELETED).when(deleting).nothing()

    @pytest.mark.parametrize("command", [starting, stopping, pausing, configuring(name="x")])
    def test_nothing_else_can_be_done(
        self, command: Callable[[Situation], tuple[Event, ...]]
    ) -> None:
        """Create another."""
        given(DELETED).when(command).refused(Rejected, "agent_deleted")


class TestConfiguring:
    """What is set changes, what is unset stays."""

    def test_nothing_new(self) -> None:
        """No event is recorded for what is so already."""
        given().when(configuring(name="Ada", policy={})).nothing()

    def test_a_policy_gets_a_version(self) -> None:
        """Decisions name it."""
        policy = adopt(DEFAULT_POLICY, {"intake": "drain"})
        given().when(configuring(policy={"intake": "drain"})).then(
            a.PolicyAdopted(agent_id=AGENT, policy=policy, version=2)
        )

    def test_a_policy_that_cannot_be(self) -> None:
        """Unknown, of a wrong type, or out of range."""
        cases: list[dict[str, object]] = [
            {"x": 1}, {"intake": "x"}, {"mailboxCapacity": 0}, {"retryBackoffS": []},
            {"toolTimeoutS": float("nan")}, {"toolTimeoutS": float("inf")}, {"toolTimeoutS": -1},
            {"retryBackoffS": [1, float("nan")]}, {"retryBackoffS": [1e12]},
            {"mailboxCapacity": 2**31},
        ]  # fmt: skip
        for wanted in cases:
            given().when(configuring(policy=wanted)).refused(Invalid)

    def test_a_parameter_is_called_what_people_call_it(self) -> None:
        """A mistake names it as the body does."""
        with pytest.raises(Invalid, match=r"policy: toolTimeoutS must be 0 to \d+, got -1"):
            adopt(DEFAULT_POLICY, {"toolTimeoutS": -1})


class TestWorkingMemory:
    """The newest entries win."""

    def test_the_oldest_gives_way(self) -> None:
        """And an entry that is written again does not count twice."""
        now = given(workingMemoryEntries=2)
        assert d.note(now.agent, ("a", "b"), ("c", "x"), None).evicted == ("a",)
        assert d.note(now.agent, ("a", "b"), ("b", "x"), None).evicted == ()

    def test_a_long_entry_is_cut(self) -> None:
        """To what the policy allows."""
        now = given(workingMemoryChars=3)
        assert d.note(now.agent, (), ("a", "abcdef"), TURN).content == "abc"

    @example(
        st.integers(0, 4), st.integers(0, 5),
        st.lists(st.tuples(st.sampled_from("abcdefg"), ANY_TEXT), max_size=20),
    )  # fmt: skip
    def test_it_stays_within_its_bounds(
        self, entries: int, chars: int, written: list[tuple[str, str]]
    ) -> None:
        """The newest keys are held, the last one written in any case, and none too long."""
        rows = given(workingMemoryEntries=entries, workingMemoryChars=chars).rows
        agent, kept = rows["agents", AGENT], tuple[str, ...]()
        for number, (key, content) in enumerate(written, start=2):
            noted = d.note(agent, kept, (key, content), None)
            fold(rows, [recorded(number, noted)])
            kept = (*(k for k in kept if k not in (key, *noted.evicted)), key)
            memories = {k[1]: r for k, r in rows.items() if k[0] == "memories" and r is not None}
            assert set(memories) == {f"{AGENT}/{k}" for k in kept}
            assert len(kept) <= max(1, entries)
            assert max(len(row.content) for row in memories.values()) <= chars
