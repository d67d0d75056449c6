"""Where a turn belongs: an id that can be, and that nobody else's conversation has."""

from __future__ import annotations

from hypothesis import assume
from hypothesis import given as example
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.support.events import ANY_JSON, ANY_TEXT
from tests.support.spec import accepted, given
from undivided.domain.attention import new_session, own_session, session_for
from undivided.domain.events.items import Payload
from undivided.domain.ids import checked_id, session_id_of
from undivided.domain.state.agent import AgentRow
from undivided.domain.state.item import ItemRow
from undivided.domain.stimuli import REGISTRY

IDS = st.text("abcXYZ019._-", min_size=1, max_size=128)


def agent(name: str = "ada") -> AgentRow:
    return replace(given().agent, id=name)


def item(kind: str = "human_chat", session: str | None = None, **extra: object) -> ItemRow:
    payload = Payload("words", extra=extra)
    return given(accepted("i1", kind, session_id=session, payload=payload)).item("i1")


class TestTheSessionOfAnItem:
    """As it was asked for, else by what the item is about."""

    def test_204_is_the_one_that_was_asked_for(self) -> None:
        """Whatever its type would say."""
        assert session_for(agent(), item(session="mine", channelKey="dev")) == "mine"

    def test_is_the_agents_own_for_chat(self) -> None:
        """One person, one conversation."""
        assert session_for(agent(), item()) == "ses_ada"

    def test_is_the_channels_for_what_came_through_one(self) -> None:
        """Agent by agent: two agents of a channel have a transcript each."""
        told = item("a2a_message", channelKey="dev")
        assert session_for(agent(), told) == "ses_channel_dev_ada"
        assert session_for(agent("bob"), told) == "ses_channel_dev_bob"

    def test_is_the_items_own_otherwise(self) -> None:
        """A heartbeat does not end in anybody's chat."""
        assert session_for(agent(), item("heartbeat")) == "ses_heartbeat_ada_i1"

    def test_is_a_new_one_for_every_attempt_whose_own_was_archived(self) -> None:
        """What was archived is not reopened, nor is what took its place and was archived too."""
        first = item()
        second = replace(first, tries=replace(first.tries, picked=1))
        names = {session_for(agent(), first), own_session(agent(), first)}
        names |= {new_session(agent(), one) for one in (first, second)}
        assert len(names) == 4


class TestAnyNames:
    """Agents, channels and callers choose names as they like."""

    @example(IDS, st.sampled_from(sorted(REGISTRY)), ANY_TEXT | ANY_JSON)
    def test_make_a_valid_id(self, name: str, kind: str, channel: object) -> None:
        """Of the letters and length that every id has."""
        told = item(kind, channelKey=channel)
        checked_id(session_for(agent(name), told), "session")
        checked_id(own_session(agent(name), told), "session")

    @example(st.lists(st.text(max_size=200), max_size=4).map(tuple))
    def test_make_a_valid_id_of_any_parts(self, parts: tuple[str, ...]) -> None:
        """Also of none, and of what no id can hold."""
        checked_id(session_id_of(parts), "session")

    @example(IDS | st.just("a" * 127), st.sampled_from("bc"), st.sampled_from("de"))
    def test_keep_two_agents_apart(self, prefix: str, one: str, other: str) -> None:
        """A name that has to be cut does not end in somebody else's conversation."""
        first, second = agent(prefix[:127] + one), agent(prefix[:127] + other)
        assert session_for(first, item()) != session_for(second, item())
        shared = item(session="shared")
        assert own_session(first, shared) != own_session(second, shared)

    @example(ANY_TEXT, ANY_TEXT)
    def test_keep_two_channels_apart(self, one: str, other: str) -> None:
        """Also where they differ only in what an id cannot hold."""
        assume(one != other)
        first, second = (item("a2a_message", channelKey=key) for key in (one, other))
        assert session_for(agent(), first) != session_for(agent(), second)

    @example(IDS, IDS)
    def test_keep_an_agents_own_session_from_another_agents_chat(
        self, name: str, asked: str
    ) -> None:
        """`a` that asks for a session `b` of another does not land in the chat of `a_b`."""
        own = own_session(agent(name), item(session=asked))
        assert own != session_for(agent(f"{name}_{asked}"), item())
