"""A script file with a mistake is refused: file, line, what is there, what is allowed."""

from __future__ import annotations

import json

import pytest

from tests.unit.requests import request
from undivided.domain.errors import Invalid
from undivided.domain.scenarios import SCENARIOS
from undivided.domain.script import Script, choose
from undivided.store.model_sources import read_script

CONTRACT = """\
rules:                        # first match wins; no match: reply "ok"
  - agent: ada
    scenario: chat
    contains: "deploy"
    step: 0
    reply: "on it"
    calls:
      - {tool: delegate, args: {target: researcher, task: "look", mode: background}}
    delay: 0.5
    chunks: 5
    marker: true
    error: timeout
    usage: {input: 100, output: 20}
"""


def read(text: str) -> Script:
    return read_script(text.encode(), "plan.yaml")


def mistake(text: str) -> str:
    with pytest.raises(Invalid) as raised:
        read(text)
    return str(raised.value)


class TestGoodFiles:
    """YAML and JSON both are scripts."""

    def test_the_documented_example(self) -> None:
        [rule] = read(CONTRACT).rules
        assert (rule.agent, rule.contains, rule.line) == ("ada", "deploy", 2)
        assert rule.calls[0].args == {"target": "researcher", "task": "look", "mode": "background"}

    def test_json_even_with_tabs_and_surrogate_pairs(self) -> None:
        rules = {"rules": [{"reply": "\U0001f600 \ud800", "delay": 1}]}
        [rule] = read(json.dumps(rules, indent="\t")).rules
        assert rule.reply == "\U0001f600 \ud800"
        assert rule.line == 3

    def test_yaml_in_braces(self) -> None:
        assert read("{rules: [{reply: hi}]}").rules[0].reply == "hi"

    def test_no_rules_at_all_is_a_script_that_says_ok(self) -> None:
        assert choose(read("rules: []"), request()).text == "ok"

    def test_what_looks_like_a_date_is_text(self) -> None:
        [rule] = read(
            "rules: [{reply: 2020-01-01, calls: [{tool: x, args: {d: 2020-01-01}}]}]"
        ).rules
        assert (rule.reply, rule.calls[0].args) == ("2020-01-01", {"d": "2020-01-01"})

    def test_every_scenario_is_allowed(self) -> None:
        for scenario in SCENARIOS:
            assert read(f"rules: [{{scenario: {scenario}}}]").rules[0].scenario == scenario


FIRST = "rules:\n  - reply: ok\n    {}\n"


class TestMistakes:
    """The first mistake is named with its place; nothing is ignored."""

    @pytest.mark.parametrize(
        ("text", "line", "words"),
        [
            (FIRST.format("replay: x"), 3, ["rules[0].replay", '"replay"', "reply", "chunks"]),
            (FIRST.format("delay: soon"), 3, ["rules[0].delay", '"soon"', "0 to 86400"]),
            (FIRST.format("delay: -1"), 3, ["rules[0].delay", "-1"]),
            (FIRST.format("delay: .nan"), 3, ["rules[0].delay", "NaN"]),
            (FIRST.format("delay: true"), 3, ["rules[0].delay", "true"]),
            (FIRST.format("chunks: 0"), 3, ["rules[0].chunks", "at least 1"]),
            (FIRST.format("step: -1"), 3, ["rules[0].step", "at least 0"]),
            (FIRST.format("step: 1.5"), 3, ["rules[0].step", "whole number"]),
            (FIRST.format("marker: 3"), 3, ["rules[0].marker", "true or false"]),
            (FIRST.format("error: oops"), 3, ["timeout, rate_limited, server_error", '"oops"']),
            (FIRST.format("scenario: talk"), 3, ["chat, a2a", '"talk"']),
            (FIRST.format("contains: 'a('"), 3, ["regular expression", "a("]),
            (FIRST.format("contains: 42"), 3, ["text (in quotes", "42"]),
            (FIRST.format("agent: no"), 3, ["text (in quotes", "false"]),
            (FIRST.format("usage: {in: 1}"), 3, ['"in"', "input, output, cache"]),
            (FIRST.format("usage: {input: x}"), 3, ["rules[0].usage.input", "whole number"]),
            (FIRST.format("calls: look"), 3, ["rules[0].calls", "a list"]),
            (FIRST.format("calls:\n    - {args: {}}"), 4, ["rules[0].calls[0]", "'tool'"]),
            (FIRST.format("calls:\n    - {tool: x, args: 1}"), 4, ["args", "a mapping"]),
            (FIRST.format("calls:\n    - {tool: x, args: {1: 2}}"), 4, ["text as names", "1"]),
            (FIRST.format("calls:\n    - {tool: x, args: {a: .inf}}"), 4, ["finite"]),
            (FIRST.format("reply: twice"), 3, ["'reply'", "twice"]),
            ("rules:\n  - reply: [x\n", 3, ["not YAML"]),
            ("rules:\n  - hello\n", 2, ["rules[0]", "a mapping with agent", '"hello"']),
            ("rules: {}\n", 1, ["rules", "a list"]),
            ("rule: []\n", 1, ['"rule"', "allowed are rules"]),
            ("[]\n", 1, ["a mapping with rules"]),
            ('{"rules": [\n{"reply": 1}]}', 2, ["rules[0].reply", "text"]),
            ('{"rules": [\n{"reply": }}', 2, ["not JSON"]),
        ],
    )
    def test_is_named(self, text: str, line: int, words: list[str]) -> None:
        said = mistake(text)
        assert said.startswith(f"plan.yaml, line {line}: ")
        for word in words:
            assert word in said

    def test_an_empty_file(self) -> None:
        assert mistake("") == "plan.yaml: the document must be a mapping with rules; got null"

    def test_a_mapping_without_rules(self) -> None:
        assert "must have the field 'rules'" in mistake("{}")

    def test_not_utf_8(self) -> None:
        with pytest.raises(Invalid, match=r"plan\.yaml: must be UTF-8 text; byte 0"):
            read_script(b"\xff\xfe", "plan.yaml")

    def test_a_script_cannot_run_code(self) -> None:
        assert "not YAML" in mistake("rules: !!python/object/apply:os.getcwd []")
