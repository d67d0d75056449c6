"""Mini triage and the judge's word: reading what a model answers, and asking once more.

The numbers are those of the scenarios in the behaviour catalogue.
"""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import spec
from tests.support.spec import accepted
from undivided.domain.events.items import Payload
from undivided.domain.judging import verdict
from undivided.domain.mini_triage import (
    ROUNDS,
    Choice,
    Correct,
    Look,
    MiniTriage,
    Settled,
    Surroundings,
    heard,
    mini_prompt,
    parsed,
)
from undivided.domain.plans import Plan

IDS = ("i1", "i2", "i3")


def answer(process: str = "i1", reasoning: str = "why", **lists: list[str]) -> str:
    return json.dumps({"processItemId": process, "reasoning": reasoning, **lists})


WHOLE = answer(deferItemIds=["i2"], dropItemIds=["i3"])
CHOICE = Choice("i1", ("i2",), ("i3",), "why")


class TestReading:
    """From text to a choice."""

    @pytest.mark.parametrize(
        "text",
        [
            WHOLE,
            f"Sure. {WHOLE} There.",
            f"<think>maybe {{no}}</think> Well: {WHOLE}",
            f"{WHOLE}<think>or {{}} rather",
            f"<think>a</think>x<think>b</think>```json\n{WHOLE}\n```",
        ],
    )
    def test_169_prose_and_thoughts_are_passed_over(self, text: str) -> None:
        """Closed and unclosed."""
        assert parsed(text, IDS) == CHOICE

    @pytest.mark.parametrize(
        "text",
        [
            "", "no", "{", "}{", "{not json}", f"<think>{WHOLE}", f"{WHOLE} or {WHOLE}",
            answer("i9"), answer(reasoning=""), json.dumps({"processItemId": "i1"}),
            json.dumps({"reasoning": "x"}), json.dumps({"processItemId": 1, "reasoning": "x"}),
        ],
    )  # fmt: skip
    def test_what_says_nothing_is_none(self, text: str) -> None:
        """Then the head is picked."""
        assert parsed(text, IDS) is None

    def test_unknown_ids_are_left_out(self) -> None:
        """And what is no list."""
        text = answer(deferItemIds=["i2", "i9"], dropItemIds=["i8"])
        assert parsed(text, IDS) == Choice("i1", ("i2",), (), "why")
        odd = json.dumps({"processItemId": "i1", "reasoning": "why", "deferItemIds": "i2"})
        assert parsed(odd, IDS) == Choice("i1", (), (), "why")

    @given(st.text())
    def test_any_text_is_read(self, text: str) -> None:
        """A model can write anything."""
        parsed(text, IDS)
        parsed(f"{{{text}}}", IDS)

    def test_a_choice_is_a_plan(self) -> None:
        """In which nothing is named twice."""
        double = Choice("i1", ("i1", "i2"), ("i2", "i3"), "why")
        assert double.plan() == Plan(process=("i1",), defer=("i2",), drop=("i3",), reasoning="why")


class TestTheConversation:
    """What is asked next."""

    def test_169_a_whole_answer_settles_it(self) -> None:
        """At once."""
        assert heard(MiniTriage(IDS), WHOLE, calls=False)[1] == Settled(CHOICE)

    @pytest.mark.parametrize(
        ("second", "expected"),
        [
            (WHOLE, CHOICE),
            (answer("i2"), Choice("i1", ("i2",), (), "why")),
            (answer("i3", deferItemIds=["i2"]), Choice("i1", ("i2",), (), "why")),
            ("sorry", Choice("i1", ("i2",), (), "why")),
        ],
    )
    def test_171_one_correction(self, second: str, expected: Choice) -> None:
        """A better answer is taken, a worse one is not; there is no third."""
        state, then = heard(MiniTriage(IDS), answer(deferItemIds=["i2"]), calls=False)
        assert isinstance(then, Correct)
        assert "i3" in then.content
        assert "i2," not in then.content
        assert not state.may_look
        assert heard(state, second, calls=True)[1] == Settled(expected)

    def test_172_six_rounds_of_looking(self) -> None:
        """Then one request without tools, whose answer counts."""
        state = MiniTriage(IDS)
        for _ in range(ROUNDS):
            assert state.may_look
            state, then = heard(state, "", calls=True)
            assert then == Look()
        assert not state.may_look
        assert heard(state, WHOLE, calls=True)[1] == Settled(CHOICE)
        assert heard(state, "", calls=True)[1] == Settled(None)


class TestThePrompt:
    """What the model is shown."""

    def test_it_speaks_as_the_agent(self) -> None:
        """With its situation, and what waits; more than fifty are only counted."""
        events = [
            accepted(f"i{n}", "system_event", 2, payload=Payload(f"about i{n}", task_id="t1"))
            for n in range(1, 53)
        ]
        situation = spec.given(*events)
        around = Surroundings(messages=("old", "x" * 3000), tasks=("t1",))
        text = mini_prompt(situation.view, situation.items, around)
        assert text.startswith("I am Ada.")
        assert "x" * 2000 in text
        assert "x" * 2001 not in text
        assert "- t1: 52" in text
        assert "i50 (system_event, normal, 0.0s): about i50" in text
        assert "i51 (" not in text
        assert "2 more wait." in text


class TestTheJudgesWord:
    """The rule's word stands unless the judge says one of its own."""

    @pytest.mark.parametrize("word", ["continue", "preempt", "cancel", "merge", "defer"])
    def test_108_112_a_word_is_taken(self, word: str) -> None:
        """However it is written."""
        assert verdict(f"  {word.upper()}\n") == word

    @pytest.mark.parametrize("text", ["", "delegate", "drop", "preempt it", "no idea"])
    def test_109_anything_else_means_continue(self, text: str) -> None:
        """Ruling 26: also the words that are kept for later."""
        assert verdict(text) == "continue"
