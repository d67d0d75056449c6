"""The history a provider is handed is valid, whatever was interleaved, lost or too much."""

from __future__ import annotations

import hypothesis
from hypothesis import strategies as st
from msgspec import Struct

from tests.support.events import ANY_TEXT, events
from undivided.domain.dialogue import AssistantSaid, Said, ToolAnswered, ToolCall, UserSaid
from undivided.domain.events import sessions as s
from undivided.domain.events.catalogue import Event
from undivided.domain.history import UNANSWERED, provider_history, said_of

MUCH = 10**9
HI, BYE = UserSaid("hi"), AssistantSaid("bye")


def asks(*ids: str) -> AssistantSaid:
    return AssistantSaid("", tuple(ToolCall(name, "look", {}) for name in ids))


def answer(name: str, content: str = "seen") -> ToolAnswered:
    return ToolAnswered(name, "look", content)


class Asked(Struct):
    """What was said, and what a provider is handed of it."""

    said: tuple[Said, ...]

    def within(self, messages: int, tokens: int) -> Handed:
        return Handed(provider_history(self.said, messages, tokens))

    def then(self, *expected: Said) -> None:
        self.within(MUCH, MUCH).then(*expected)


class Handed(Struct):
    """A history as it is handed over."""

    history: tuple[Said, ...]

    def then(self, *expected: Said) -> None:
        assert self.history == expected


def given(*said: Said) -> Asked:
    return Asked(said)


def whole(said: tuple[Said, ...]) -> tuple[Said, ...]:
    return provider_history(said, MUCH, MUCH)


class TestAdjacency:
    """Every call is answered right behind it, in the order of the calls."""

    def test_leaves_what_is_right_as_it_is(self) -> None:
        said = (HI, asks("c1", "c2"), answer("c1"), answer("c2"), BYE)
        given(*said).then(*said)

    def test_puts_answers_in_the_order_of_the_calls(self) -> None:
        given(HI, asks("c1", "c2"), answer("c2"), answer("c1")).then(
            HI, asks("c1", "c2"), answer("c1"), answer("c2")
        )

    def test_moves_what_came_between_behind_the_answers(self) -> None:
        given(HI, asks("c1"), UserSaid("and?"), answer("c1")).then(
            HI, asks("c1"), answer("c1"), UserSaid("and?")
        )

    def test_makes_up_an_answer_that_was_never_given(self) -> None:
        given(HI, asks("c1"), BYE).then(HI, asks("c1"), answer("c1", UNANSWERED), BYE)

    def test_leaves_out_an_answer_to_no_call(self) -> None:
        given(HI, answer("c9"), BYE).then(HI, BYE)

    def test_leaves_out_a_response_that_said_nothing(self) -> None:
        """Providers refuse to read an empty response again."""
        given(HI, AssistantSaid(" \n"), UserSaid("well?")).then(HI, UserSaid("well?"))

    def test_says_once_what_was_put_twice(self) -> None:
        """An item that was tried again does not make its words two messages."""
        given(HI, AssistantSaid(""), HI).then(HI)

    def test_begins_with_a_user(self) -> None:
        given(BYE, asks("c1"), answer("c1"), HI).then(HI)

    def test_is_empty_where_no_user_spoke(self) -> None:
        given(BYE, asks("c1")).then()
        given().then()


class TestLimits:
    """What does not fit is cut off at the old end, never in the middle of an exchange."""

    def test_keeps_the_newest_messages(self) -> None:
        said = (UserSaid("1"), BYE, UserSaid("2"), BYE, UserSaid("3"))
        given(*said).within(3, MUCH).then(UserSaid("2"), BYE, UserSaid("3"))

    def test_counts_tokens_at_three_and_a_half_characters(self) -> None:
        said = (UserSaid("a" * 35), UserSaid("b" * 35), UserSaid("c" * 35))
        given(*said).within(99, 20).then(*said[1:])
        given(*said).within(99, 19).then(said[2])

    def test_keeps_the_newest_user_message_in_any_case(self) -> None:
        """However little fits, a model knows what it was asked, and what came of that."""
        said = (UserSaid("old"), UserSaid("new"), asks("c1"), answer("c1"))
        given(*said).within(1, 1).then(*said[1:])

    def test_never_begins_inside_an_exchange(self) -> None:
        said = (HI, asks("c1"), answer("c1"), UserSaid("2"))
        for most in (1, 2, 3):
            given(*said).within(most, MUCH).then(UserSaid("2"))


NAMES = st.sampled_from(["c1", "c2", "c3", "c4"])
MESSAGES: st.SearchStrategy[Said] = st.one_of(
    st.builds(UserSaid, ANY_TEXT),
    st.builds(
        AssistantSaid,
        ANY_TEXT,
        st.lists(NAMES, max_size=3, unique=True).map(
            lambda ids: tuple(ToolCall(name, "look", {}) for name in ids)
        ),
    ),
    st.builds(ToolAnswered, NAMES, st.just("look"), ANY_TEXT),
)
ANYTHING = st.lists(MESSAGES, max_size=20).map(tuple)


def assert_valid(history: tuple[Said, ...]) -> None:
    """What a provider insists on."""
    assert not history or isinstance(history[0], UserSaid)
    expected: list[str] = []
    for one in history:
        if isinstance(one, ToolAnswered):
            assert expected, "an answer to no call, or to one that has its answer"
            assert one.call_id == expected.pop(0)
            continue
        assert not expected, f"unanswered: {expected}"
        if isinstance(one, AssistantSaid):
            assert one.calls or one.content.strip()
            expected = [call.id for call in one.calls]
    assert not expected, f"unanswered: {expected}"


class TestAnyHistory:
    """Whatever was said, in whatever order, with whatever missing."""

    @hypothesis.given(ANYTHING, st.integers(0, 25), st.integers(0, 100))
    def test_is_valid(self, said: tuple[Said, ...], messages: int, tokens: int) -> None:
        assert_valid(provider_history(said, messages, tokens))

    @hypothesis.given(st.lists(events(), max_size=15), st.integers(0, 25))
    def test_is_valid_for_any_events_of_a_session(self, told: list[Event], messages: int) -> None:
        said = [one for one in map(said_of, told) if one is not None]
        assert_valid(provider_history(said, messages, 50))

    @hypothesis.given(ANYTHING, st.integers(0, 25), st.integers(0, 100))
    def test_is_the_end_of_the_whole(
        self, said: tuple[Said, ...], messages: int, tokens: int
    ) -> None:
        """Limits cut the old end off and change nothing else."""
        everything = whole(said)
        kept = provider_history(said, messages, tokens)
        assert kept == everything[len(everything) - len(kept) :]

    @hypothesis.given(ANYTHING, st.integers(0, 25), st.integers(0, 100))
    def test_stays_within_its_limits(
        self, said: tuple[Said, ...], messages: int, tokens: int
    ) -> None:
        """More than the limits is only what follows the newest user message, and that itself."""
        kept = provider_history(said, messages, tokens)
        if sum(isinstance(one, UserSaid) for one in kept) > 1:
            assert len(kept) <= messages
            characters = sum(
                len(one.content)
                + (
                    sum(len(str(c.args)) for c in one.calls)
                    if isinstance(one, AssistantSaid)
                    else 0
                )
                for one in kept
            )
            assert characters <= tokens * 3.5

    @hypothesis.given(ANYTHING, st.integers(0, 25), st.integers(0, 100))
    def test_holds_the_newest_user_message(
        self, said: tuple[Said, ...], messages: int, tokens: int
    ) -> None:
        asked = [one for one in said if isinstance(one, UserSaid)]
        kept = provider_history(said, messages, tokens)
        assert [one for one in kept if isinstance(one, UserSaid)][-1:] == asked[-1:]

    @hypothesis.given(ANYTHING)
    def test_is_what_it_is_made_of(self, said: tuple[Said, ...]) -> None:
        """A history that is valid already is handed over as it is."""
        assert whole(whole(said)) == whole(said)


class TestWhatIsSaid:
    """The transcript is a pure function of a session's events."""

    def test_of_an_event_that_says_nothing_is_nothing(self) -> None:
        yielded = s.TurnYielded(turn_id="t1", epoch=1)
        assert said_of(yielded) is None

    @hypothesis.given(events(s.ModelResponded, s.ToolCallFinished, s.TurnStarted))
    def test_is_in_the_words_of_the_event(self, event: Event) -> None:
        match said_of(event), event:
            case UserSaid(content=said), s.TurnStarted(input=text):
                assert said == text
            case AssistantSaid(content=said, calls=calls), s.ModelResponded(text=text):
                assert (said, calls) == (text, event.calls)
            case ToolAnswered(call_id=name, content=said), s.ToolCallFinished(content=text):
                assert (name, said) == (event.call_id, text)
            case other:
                raise AssertionError(other)
