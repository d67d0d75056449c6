"""Recorded responses come again in order, and the first request that differs is reported."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.requests import request
from undivided.domain.dialogue import ModelRequest, Usage
from undivided.domain.errors import Invalid, ModelFailed
from undivided.domain.rehearsal import Recording, parse_recording, respond

ADA = [
    {"expect": "hello", "reply": "hi", "usage": {"input": 3, "output": 1, "cache": 2}},
    {"expect": None, "reply": "", "calls": [{"tool": "look", "args": {"at": 1}}, {"tool": "x"}]},
]


def recording(ada: object = ADA) -> Recording:
    return parse_recording(json.dumps({"agents": {"ada": ada}}).encode(), "talk.json")


def refusal(asked: ModelRequest, ada: object = ADA) -> str:
    with pytest.raises(ModelFailed) as raised:
        respond(recording(ada), asked)
    assert raised.value.kind == "refused"
    return raised.value.detail


class TestResponses:
    """The response is the one at the number of responses that the session holds."""

    def test_first(self) -> None:
        reply = respond(recording(), request(response_index=0))
        assert (reply.text, reply.calls) == ("hi", ())
        assert reply.usage == Usage(3, 1, 2, requests=1)

    def test_second_whatever_was_said(self) -> None:
        reply = respond(recording(), request(response_index=1, newest_input="anything"))
        assert [(call.tool, call.args) for call in reply.calls] == [("look", {"at": 1}), ("x", {})]

    @given(st.text(st.characters(codec=None)), st.text(st.characters(codec=None)))
    def test_any_text_is_expected_and_given_exactly(self, expect: str, reply: str) -> None:
        recorded = recording([{"expect": expect, "reply": reply}])
        assert respond(recorded, request(newest_input=expect)).text == reply

    def test_the_same_request_has_the_same_response(self) -> None:
        asked = request(response_index=1)
        assert respond(recording(), asked) == respond(recording(), asked)


class TestDifferences:
    """A request that was not recorded so is refused with a sentence, not answered."""

    def test_another_input(self) -> None:
        said = refusal(request(newest_input="help"))
        assert said == (
            "request 0 (counted from 0) of agent ada differs from the recorded one at "
            'character 3: expected "hello", got "help"'
        )

    def test_long_inputs_are_shown_where_they_part(self) -> None:
        long = "x" * 5_000
        said = refusal(request(newest_input=long + "b"), [{"expect": long + "a" + long}])
        assert "at character 5000" in said
        assert len(said) < 400

    def test_past_the_end(self) -> None:
        said = refusal(request(response_index=2))
        assert "asks for response 2, counted from 0" in said
        assert "the recording has only 2 responses of it" in said

    def test_an_agent_that_was_not_there(self) -> None:
        said = refusal(request(agent_id="bob"))
        assert said == "the recording has no agent bob; its agents are ada"


class TestMistakes:
    """A recording of another shape is refused, with the place."""

    @pytest.mark.parametrize(
        ("content", "words"),
        [
            (b'{"agents":\n}', "talk.json, line 2: not JSON"),
            (b"[]", "Expected `object`"),
            (b'{"agents": {"a": [{"reply": 1}]}}', "$.agents[...][0].reply"),
            (b'{"agents": {"a": [{"replay": ""}]}}', "unknown field `replay`"),
            (b'{"agents": {"a": [{"calls": [{"tool": "x", "args": {"y": NaN}}]}]}}', "NaN"),
            (b"\xff", "not JSON"),
        ],
    )
    def test_is_named(self, content: bytes, words: str) -> None:
        with pytest.raises(Invalid) as raised:
            parse_recording(content, "talk.json")
        assert str(raised.value).startswith("talk.json")
        assert words in str(raised.value)
