"""Which rule of a script answers, and what it says."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.requests import request
from undivided.domain.calls import call_id
from undivided.domain.dialogue import ModelRequest, Usage
from undivided.domain.marker import COMPLETION_MARKER
from undivided.domain.script import Rule, Script, choose, deltas
from undivided.domain.script_document import parse_script

ANY_TEXT = st.text(st.characters(codec=None))


def script(*rules: Mapping[str, object]) -> Script:
    return parse_script({"rules": list(rules)}, "plan.yaml", {})


def text(asked: ModelRequest, *rules: Mapping[str, object]) -> str:
    return choose(script(*rules), asked).text


class TestConditions:
    """A rule answers only where every one of its conditions holds."""

    def test_no_match_replies_ok(self) -> None:
        assert text(request(), {"agent": "somebody", "reply": "no"}) == "ok"

    def test_first_match_wins(self) -> None:
        assert text(request(), {"reply": "one"}, {"reply": "two"}) == "one"

    def test_agent_is_an_agent_id(self) -> None:
        assert text(request(), {"agent": "ada", "reply": "yes"}) == "yes"

    def test_agent_is_a_definition_id(self) -> None:
        assert text(request(), {"agent": "researcher", "reply": "yes"}) == "yes"

    def test_an_agent_rule_is_not_for_agents_without_definition(self) -> None:
        assert text(request(definition=None), {"agent": "researcher", "reply": "yes"}) == "ok"

    def test_scenario(self) -> None:
        rules = {"scenario": "task", "reply": "yes"}
        assert text(request(), rules) == "ok"
        assert text(request(scenario="task"), rules) == "yes"

    def test_step(self) -> None:
        rules = {"step": 1, "reply": "second"}, {"step": 0, "reply": "first"}
        assert text(request(step=0), *rules) == "first"
        assert text(request(step=1), *rules) == "second"
        assert text(request(step=2), *rules) == "ok"

    def test_contains_is_searched_in_the_newest_input(self) -> None:
        rule = {"contains": r"deploy \d+", "reply": "yes"}
        assert text(request(newest_input="please deploy 42 now"), rule) == "yes"
        assert text(request(newest_input="please deploy now"), rule) == "ok"

    def test_every_condition_must_hold(self) -> None:
        rule = {"agent": "ada", "scenario": "chat", "step": 0, "contains": "lo", "reply": "yes"}
        assert text(request(), rule) == "yes"
        for other in ({"agent": "x"}, {"scenario": "run"}, {"step": 3}, {"contains": "z"}):
            assert text(request(), {**rule, **other}) == "ok"


class TestAnswer:
    """What the matching rule says is what the answer holds."""

    def test_everything_a_rule_can_say(self) -> None:
        answer = choose(
            script(
                {
                    "reply": "on it",
                    "calls": [{"tool": "look", "args": {"at": "{input}"}}, {"tool": "wait"}],
                    "delay": 0.5,
                    "chunks": 5,
                    "error": "timeout",
                    "usage": {"input": 100, "output": 20},
                }
            ),
            request(),
        )
        assert [(call.tool, call.args) for call in answer.calls] == [
            ("look", {"at": "{input}"}),
            ("wait", {}),
        ]
        assert answer.text == "on it"
        assert answer.delay == timedelta(milliseconds=500)
        assert (answer.chunks, answer.error) == (5, "timeout")
        assert answer.usage == Usage(100, 20, requests=1)

    def test_calls_without_reply_say_nothing(self) -> None:
        assert text(request(), {"calls": [{"tool": "wait"}]}) == ""

    def test_a_rule_that_says_nothing_says_ok(self) -> None:
        assert text(request(), {"delay": 0}) == "ok"

    @given(ANY_TEXT, ANY_TEXT, ANY_TEXT)
    def test_input_stands_for_the_newest_input(self, before: str, told: str, after: str) -> None:
        """Once, wherever it stands; the input's own `{input}` stays as it was said."""
        rule = Rule(reply="<" + before.replace("{", "") + "{input}" + after.replace("{", ""))
        said = choose(Script("", (rule,)), request(newest_input=told)).text
        assert said == "<" + before.replace("{", "") + told + after.replace("{", "")

    def test_inputs_own_placeholder_is_kept(self) -> None:
        assert text(request(newest_input="{input}!"), {"reply": "{input} {input}"}) == (
            "{input}! {input}!"
        )


class TestMarker:
    """The completion marker is appended only where the request asks for it."""

    WANTED = request(instructions=f"End with {COMPLETION_MARKER} when you are done.")

    def test_left_out_where_not_asked_for(self) -> None:
        assert text(request(), {"reply": "done", "marker": True}) == "done"

    def test_appended_where_asked_for(self) -> None:
        assert text(self.WANTED, {"reply": "done"}) == f"done\n{COMPLETION_MARKER}"

    def test_appended_where_no_rule_matches(self) -> None:
        assert text(self.WANTED) == f"ok\n{COMPLETION_MARKER}"

    def test_left_out_where_the_rule_says_so(self) -> None:
        assert text(self.WANTED, {"reply": "done", "marker": False}) == "done"

    def test_left_out_of_a_response_that_calls_tools(self) -> None:
        assert text(self.WANTED, {"reply": "on it", "calls": [{"tool": "wait"}]}) == "on it"

    def test_never_twice(self) -> None:
        assert text(self.WANTED, {"reply": COMPLETION_MARKER}) == COMPLETION_MARKER


class TestDeterminism:
    """The same request has the same answer, in any worker and after any crash."""

    RULES: tuple[Mapping[str, object], ...] = (
        {"contains": "a", "reply": "{input}", "calls": [{"tool": "x"}, {"tool": "y"}]},
        {"step": 2, "reply": "two", "chunks": 3},
    )

    @given(ANY_TEXT, st.integers(0, 3), st.text(max_size=5))
    def test_answers_are_equal(self, told: str, step: int, turn: str) -> None:
        asked = {"newest_input": told, "step": step, "turn_id": turn}
        first = choose(script(*self.RULES), request(**asked))
        assert first == choose(script(*self.RULES), request(**asked))

    @given(st.lists(st.tuples(st.text(), st.integers(0, 9), st.integers(0, 9)), unique=True))
    def test_call_ids_differ_by_turn_step_and_index(
        self, places: list[tuple[str, int, int]]
    ) -> None:
        ids = {call_id(request(turn_id=turn, step=step), index) for turn, step, index in places}
        assert len(ids) == len(places)

    def test_call_ids_stay_what_they_were(self) -> None:
        """A worker of a later release must give a running turn the same ids."""
        assert call_id(request(), 0) == "call_0a5280f829465ec8ff92e442"


class TestDeltas:
    """A reply is streamed in as many parts as its rule says."""

    @given(ANY_TEXT, st.integers(1, 50))
    def test_parts_make_the_whole(self, whole: str, chunks: int) -> None:
        parts = deltas(whole, chunks)
        assert "".join(parts) == whole
        assert len(parts) == min(chunks, len(whole))
        assert all(parts)

    @pytest.mark.parametrize(("chunks", "parts"), [(1, ("abcde",)), (2, ("ab", "cde"))])
    def test_parts_are_nearly_equal(self, chunks: int, parts: tuple[str, ...]) -> None:
        assert deltas("abcde", chunks) == parts
