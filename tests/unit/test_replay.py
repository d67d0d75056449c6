"""Replaying: what is shown at each step, what differs between two, and the keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from tests.support.events import BEGAN, placed, recorded
from tests.support.histories import good_histories
from undivided.cli.replay.changes import Change, changes
from undivided.cli.replay.states import Fold, state_of
from undivided.cli.replay.stepping import print_steps, step_told, steps, walk
from undivided.cli.replay.story import Story
from undivided.cli.replay.views import changes_view, state_view
from undivided.domain.events.agents import AgentPaused
from undivided.domain.placed import Placed
from undivided.domain.recorded import Meta, Recorded


def story_of(history: list[Placed], agent: str = "z") -> Story:
    """The story of one agent of a made-up history; its session is called like it."""
    streams = (f"agent:{agent}", f"session:{agent}")
    own = tuple(one for one in history if one.recorded.stream in streams)
    return Story("agent", agent, own)


def session_of(history: list[Placed], session: str = "z") -> Story:
    own = tuple(one for one in history if one.recorded.stream == f"session:{session}")
    return Story("session", session, own)


def shown(renderable: Any) -> str:
    console = Console(width=200, record=True)
    console.print(renderable)
    return console.export_text()


class TestStates:
    """An agent or session at any event."""

    @given(good_histories(steps=3))
    def test_the_end_of_a_story(self, history: list[Placed]) -> None:
        state = state_of(story_of(history))
        assert state["position"] == str(story_of(history).events[-1].coordinate)
        assert state["agent"]["status"] == "started"
        assert state["items"] == {"completed": 1, "cancelled": 1, "dead_letter": 1, "queued": 1}
        assert list(state["sessions"]) == ["z"]

    @given(good_histories(steps=3), st.data())
    def test_a_session_is_the_same_seen_from_its_agent(
        self, history: list[Placed], data: st.DataObject
    ) -> None:
        whole = session_of(history)
        end = data.draw(st.integers(0, len(whole.events)))
        last = whole.events[end - 1].coordinate if end else None
        alone = Fold(whole).take(whole.events[:end]).state()
        story = story_of(history)
        with_agent = Fold(story).take(
            one for one in story.events if last is not None and one.coordinate <= last
        )
        seen = with_agent.state().get("sessions", {}).get("z", {"session": None})
        assert seen == {k: v for k, v in alone.items() if k in seen}

    @given(good_histories(steps=3))
    def test_a_transcript_grows_message_by_message(self, history: list[Placed]) -> None:
        """What was said once is never said otherwise later."""
        story = session_of(history)
        before: list[Any] = []
        for step in steps(story):
            now = step.state.get("messages", [])
            assert now[: len(before)] == before
            before = now
        assert [one["position"] for one in before] == sorted(
            (one["position"] for one in before), key=lambda p: tuple(map(int, p.split("-")))
        )

    @given(st.lists(recorded(), max_size=20), st.sampled_from(["agent", "session"]))
    def test_any_history_can_be_shown(self, history: list[Recorded], kind: Any) -> None:
        """Terminal escapes and lone surrogates included."""
        story = Story(kind, "a", tuple(placed(history)))
        for step in steps(story):
            text = shown(state_view(step.state)) + shown(changes_view(step.changed))
            assert "\x1b" not in text
            text.encode()
            step_told(story, step)

    @given(good_histories(steps=3), st.integers(3_990, 4_010))
    def test_a_long_message_is_shortened_for_a_terminal(
        self, history: list[Placed], length: int
    ) -> None:
        """With what is left out; the state has all of it."""
        state = state_of(session_of(history))
        state["messages"][0]["content"] = "x" * length
        text = shown(state_view(state))
        assert text.count("x" * 100) <= 40
        assert (f"({length - 4_000} characters more)" in text) is (length > 4_000)

    def test_before_its_beginning_there_is_nothing(self) -> None:
        assert "had not begun" in shown(state_view(state_of(Story("agent", "a", ()))))


class TestChanges:
    """What differs between two states."""

    @given(good_histories(steps=3))
    def test_nothing_differs_from_itself(self, history: list[Placed]) -> None:
        state = state_of(story_of(history))
        assert changes(state, state) == []
        assert changes(state, state_of(story_of(history))) == []

    @given(good_histories(steps=3), st.data())
    def test_the_steps_between_make_the_difference(
        self, history: list[Placed], data: st.DataObject
    ) -> None:
        """Whatever differs between two moments was changed by a step between them."""
        told = list(steps(story_of(history)))
        first = data.draw(st.integers(0, len(told) - 1))
        last = data.draw(st.integers(first, len(told) - 1))
        between = {c.path for step in told[first + 1 : last + 1] for c in step.changed}
        whole = {c.path for c in changes(told[first].state, told[last].state)}
        assert all(any(related(path, other) for other in between) for path in whole)

    def test_places_are_named(self) -> None:
        before = {"a": {"b": 1}, "list": [1], "named": [{"id": "x", "n": 1}], "time": 1}
        after = {"a": {"b": 2}, "list": [1, 2], "named": [{"id": "y", "n": 2}], "time": 2}
        assert changes(before, after) == [
            Change("a.b", 1, 2),
            Change("list[1]", None, 2),
            Change("named.x", {"id": "x", "n": 1}, None),
            Change("named.y", None, {"id": "y", "n": 2}),
        ]


def related(path: str, other: str) -> bool:
    """Whether one place is the other, or within it."""
    return path.startswith(other) or other.startswith(path)


class TestStepping:
    """Forward and back with keys; without a terminal every step in turn."""

    @given(good_histories(steps=0))
    def test_every_step_in_turn(self, history: list[Placed]) -> None:
        story = session_of(history)
        console = Console(width=200, record=True)
        print_steps(story, console)
        text = console.export_text()
        for number in range(1, len(story.events) + 1):
            assert f"{number}/{len(story.events)}" in text

    def test_keys_go_forward_and_back_and_stop_at_the_ends(self) -> None:
        assert visited("nnppppnGnngq") == [1, 2, 3, 2, 1, 1, 1, 2, 5, 5, 5, 1]

    def test_arrows_do_the_same_and_other_keys_nothing(self) -> None:
        assert visited(["\x1b[C", "x", "\x1b[D", "\x03"]) == [1, 2, 2, 1]

    def test_a_story_without_events_can_be_left(self) -> None:
        console = Console(width=120, record=True)
        walk(Story("agent", "a", ()), console, iter("npq").__next__)
        assert "had not begun" in console.export_text()


def visited(keys: Any) -> list[int]:
    """The steps that are shown, one for each key and one before them."""
    history = placed([envelope(n) for n in range(1, 6)])
    console = Console(width=120, record=True)
    walk(Story("agent", "a", tuple(history)), console, iter(keys).__next__)
    return list(numbers(console.export_text()))


def numbers(text: str) -> Iterator[int]:
    for line in text.splitlines():
        head, slash, rest = line.partition("/5  ")
        if slash and rest and head.isdigit():
            yield int(head)


def envelope(version: int) -> Recorded:
    event = AgentPaused(agent_id="a")
    return Recorded(f"e{version}", "agent:a", version, event, Meta(), BEGAN)
