"""An agent's life: create, configure, start, pause, stop, delete, and what it keeps in mind."""

from __future__ import annotations

import hypothesis
from hypothesis import strategies as st
from msgspec import structs

from tests.support.events import ANY_TEXT
from tests.support.spec import Past, accepted, created, given, picked, suspended
from undivided.domain import agents
from undivided.domain.agents import AGENT_STOPPED, ConfigureAgent, CreateAgent
from undivided.domain.decisions import Decision
from undivided.domain.errors import Invalid, Rejected
from undivided.domain.events import agents as a
from undivided.domain.events.flights import StopRequested
from undivided.domain.events.items import ItemCancelled
from undivided.domain.policy import DEFAULT_POLICY, adopt

STARTED = a.AgentStarted(agent_id="ada")
STOPPED = a.AgentStopped(agent_id="ada")
PAUSED = a.AgentPaused(agent_id="ada")
RESUMED = a.AgentResumed(agent_id="ada")
DELETED = a.AgentDeleted(agent_id="ada")
AT_WORK = (created(), accepted("i1", 1), picked("i1"))


def stop_requested(by: str) -> StopRequested:
    return StopRequested(agent_id="ada", turn_id="t1", by=by)


def wanting(**fields: object) -> CreateAgent:
    return structs.replace(CreateAgent(agent_id="ada", name="Ada"), **fields)


def configured(**fields: object) -> a.AgentConfigured:
    as_it_is = a.AgentConfigured(
        agent_id="ada", name="Ada", model="default", instructions="", tools=None,
        heartbeat_interval_s=None,
    )  # fmt: skip
    return structs.replace(as_it_is, **fields)


class TestCreating:
    """An agent begins with everything that is known about it in one event."""

    def test_is_its_first_event(self) -> None:
        """Name, model and a whole policy are in it, so that it needs no defaults later."""
        given(DEFAULT_POLICY).when(agents.create, wanting(policy={"itemMaxRetries": 5})).then(
            a.AgentCreated(
                agent_id="ada", name="Ada", definition=None, model="default", instructions="",
                tools=None, policy=structs.replace(DEFAULT_POLICY, item_max_retries=5),
            )
        )  # fmt: skip

    def test_refuses_a_name_that_says_nothing(self) -> None:
        """A name has 1 to 200 characters that can be shown."""
        for name in ("", "  ", "x" * 201, "a\x00b", "a\ud800"):
            given(DEFAULT_POLICY).when(agents.create, wanting(name=name)).refused(Invalid, "name")

    def test_refuses_instructions_beyond_reading(self) -> None:
        """Instructions have at most 100,000 characters."""
        long = wanting(instructions="x" * 100_001)
        given(DEFAULT_POLICY).when(agents.create, long).refused(Invalid, "instructions")

    def test_refuses_a_policy_that_cannot_be(self) -> None:
        """An unknown parameter, a wrong type or a value out of range is named."""
        for policy, said in (
            ({"itemMaxRetry": 1}, "itemMaxRetry"),
            ({"itemMaxRetries": "two"}, "itemMaxRetries"),
            ({"itemMaxRetries": -1}, "item_max_retries"),
            ({"maxDeliveryAttempts": 0}, "maxDeliveryAttempts"),
            ({"mailboxCapacity": 0}, "mailboxCapacity"),
            ({"retryBackoffS": []}, "retryBackoffS"),
        ):
            wanted = wanting(policy=policy)
            given(DEFAULT_POLICY).when(agents.create, wanted).refused(Invalid, said)


class TestConfiguring:
    """What is set changes, what is unset stays, and what changes nothing is no event."""

    def test_records_the_whole_configuration(self) -> None:
        given(created()).when(agents.configure, ConfigureAgent(model="fast")).then(
            configured(model="fast")
        )

    def test_records_nothing_where_all_stays(self) -> None:
        same = ConfigureAgent(name="Ada", model="default", policy={})
        given(created()).when(agents.configure, same).nothing()

    def test_gives_a_new_policy_the_next_version(self) -> None:
        """Decisions name the version they were made under."""
        given(created()).when(agents.configure, ConfigureAgent(policy={"itemMaxRetries": 7})).then(
            a.PolicyAdopted(
                agent_id="ada", policy=adopt(DEFAULT_POLICY, {"itemMaxRetries": 7}), version=2
            )
        )

    def test_puts_a_policy_over_the_one_there_is(self) -> None:
        """What an earlier change set stays set."""
        past = (created(itemMaxRetries=7),)
        given(*past).when(agents.configure, ConfigureAgent(policy={"timeoutMaxRetries": 1})).then(
            a.PolicyAdopted(
                agent_id="ada", version=2,
                policy=adopt(DEFAULT_POLICY, {"itemMaxRetries": 7, "timeoutMaxRetries": 1}),
            )
        )  # fmt: skip

    def test_can_take_a_value_away(self) -> None:
        """None is a value: no tools named means all of them."""
        past = (created(), configured(tools=("sleep",)))
        given(*past).when(agents.configure, ConfigureAgent(tools=None)).then(configured())

    def test_refuses_what_creating_refuses(self) -> None:
        given(created()).when(agents.configure, ConfigureAgent(name="")).refused(Invalid, "name")


class TestStartingPausingStopping:
    """Three lifecycles; asking for the one there is changes nothing."""

    def test_pausing_lets_the_turn_finish(self) -> None:
        given(*AT_WORK).when(agents.pause).then(PAUSED)

    def test_pausing_a_resting_agent_changes_nothing(self) -> None:
        for resting in (PAUSED, STOPPED):
            given(created(), resting).when(agents.pause).nothing()

    def test_starting_says_what_it_ends(self) -> None:
        given(created(), PAUSED).when(agents.start).then(RESUMED)
        given(created(), STOPPED).when(agents.start).then(STARTED)
        given(created()).when(agents.start).nothing()

    def test_stopping_asks_the_turn_to_end(self) -> None:
        """The stop is known as the agent's, so that the item waits again."""
        given(*AT_WORK).when(agents.stop).then(STOPPED, stop_requested(AGENT_STOPPED))

    def test_stopping_an_idle_agent_asks_nobody(self) -> None:
        given(created()).when(agents.stop).then(STOPPED)

    def test_stopping_reaches_a_turn_that_waits(self) -> None:
        given(*AT_WORK, suspended()).when(agents.stop).then(STOPPED, stop_requested(AGENT_STOPPED))

    def test_stopping_a_paused_agent_stops_it(self) -> None:
        given(created(), PAUSED).when(agents.stop).then(STOPPED)

    def test_stopping_twice_changes_nothing(self) -> None:
        given(created(), STOPPED).when(agents.stop).nothing()


class TestStoppingATurn:
    """A stop is about one turn, is asked for once, and remembers who asked first."""

    def test_names_the_turn_and_who_asked(self) -> None:
        given(*AT_WORK).when(agents.request_stop, "bob").then(stop_requested("bob"))

    def test_without_a_turn_stops_nothing(self) -> None:
        """It never reaches a turn that is yet to come."""
        given(created(), accepted("i1", 1)).when(agents.request_stop, "bob").nothing()

    def test_a_second_time_changes_nothing(self) -> None:
        stopped = (*AT_WORK, stop_requested("bob"))
        given(*stopped).when(agents.request_stop, "eve").nothing()
        given(*stopped, suspended()).when(agents.request_stop, "eve").nothing()


class TestDeleting:
    """What waits is cancelled with a decision each, and the agent takes nothing more."""

    def test_cancels_all_that_waits(self) -> None:
        past = Past(created(), accepted("i1", 1), accepted("i2", 2))
        waiting = tuple(past.items("ada"))
        events = agents.delete(past.agent(), waiting, ("d1", "d2"))
        assert [type(event) for event in events] == [ItemCancelled, ItemCancelled, a.AgentDeleted]
        past.append(*events)
        assert past.agent().waiting == 0
        assert past.agent().lifecycle == "deleted"

    def test_says_why_of_each(self) -> None:
        past = Past(created(), accepted("i1", 1))
        given(past.agent()).when(agents.delete, tuple(past.items("ada")), ("d1",)).then(
            ItemCancelled(
                agent_id="ada", item_id="i1", turn_id=None, by="agent deletion",
                decision=Decision("d1", "cancel", "agent_deleted", "the agent was deleted",
                                  {"waiting": 1}, 1),
            ),
            DELETED,
        )  # fmt: skip

    def test_waits_for_no_turn(self) -> None:
        """A turn at work, or one that waits, refuses it: stop first."""
        given(*AT_WORK).when(agents.delete, (), ()).refused(Rejected, "stop it first")
        given(*AT_WORK, suspended()).when(agents.delete, (), ()).refused(Rejected, "stop it first")

    def test_twice_changes_nothing(self) -> None:
        given(created(), DELETED).when(agents.delete, (), ()).nothing()

    def test_refuses_everything_afterwards(self) -> None:
        gone = given(created(), DELETED)
        for command in (agents.start, agents.pause, agents.stop):
            gone.when(command).refused(Rejected, "was deleted")
        gone.when(agents.configure, ConfigureAgent(name="B")).refused(Rejected, "was deleted")


class TestWorkingMemory:
    """The newest entries win; there are never more, nor longer ones, than the policy allows."""

    def test_evicts_the_oldest(self) -> None:
        given(created(workingMemoryEntries=2)).when(
            agents.note, ("k1", "k2"), ("k3", "new"), "t1"
        ).then(
            a.MemoryNoted(agent_id="ada", key="k3", content="new", turn_id="t1", evicted=("k1",))
        )

    def test_replaces_an_entry_in_its_place(self) -> None:
        given(created(workingMemoryEntries=2)).when(
            agents.note, ("k1", "k2"), ("k1", "newer"), None
        ).then(a.MemoryNoted(agent_id="ada", key="k1", content="newer", turn_id=None))

    def test_cuts_what_is_too_long(self) -> None:
        given(created(workingMemoryChars=3)).when(agents.note, (), ("k", "abcdef"), None).then(
            a.MemoryNoted(agent_id="ada", key="k", content="abc", turn_id=None)
        )

    @hypothesis.given(
        st.integers(0, 4),
        st.integers(0, 5),
        st.lists(st.tuples(st.sampled_from("abcdefg"), ANY_TEXT), max_size=20),
    )
    def test_stays_within_its_bounds(
        self, entries: int, chars: int, written: list[tuple[str, str]]
    ) -> None:
        """After any writes the newest keys are held, the last one in any case, all short enough."""
        past = Past(created(workingMemoryEntries=entries, workingMemoryChars=chars))
        held: tuple[str, ...] = ()
        for entry in written:
            past.append(event := agents.note(past.agent(), held, entry, None))
            held = (*(k for k in held if k not in (entry[0], *event.evicted)), entry[0])
            rows = {k[1]: r for k, r in past.rows.items() if k[0] == "memories" and r is not None}
            assert set(rows) == {f"ada/{key}" for key in held}
            assert len(rows) <= max(1, entries)
            assert all(len(row.content) <= chars for row in rows.values())
            assert entry[0] in held
