"""Names of fields, stored and told: turned there and back, and only where they are ours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from undivided.store.wording import as_stored, in_camel_case

GOLDEN = Path(__file__).parent.parent / "golden" / "0001.jsonl"
SAMPLES = [json.loads(line) for line in GOLDEN.read_text(encoding="utf-8").splitlines()]


def names(value: Any) -> set[str]:
    """Every name of every object."""
    if isinstance(value, list):
        return set().union(*map(names, value))
    if isinstance(value, dict):
        return set(value).union(*map(names, value.values()))
    return set()


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample["type"])
def test_there_and_back(sample: dict[str, Any]) -> None:
    told = in_camel_case(sample["type"], sample["data"])
    assert as_stored(sample["type"], told) == sample["data"]
    assert as_stored(sample["type"], sample["data"]) == sample["data"]
    assert not any("_" in name for name in told)


def test_what_others_named_keeps_its_name() -> None:
    args = {"my_key": [{"their_key": 1}], "theirKey": {"turn_id": 2}}
    data = {"turn_id": "t", "call_id": "c", "tool": "look", "args": args}
    told = in_camel_case("tool_call.started", data)
    assert told == {"turnId": "t", "callId": "c", "tool": "look", "args": args}
    assert as_stored("tool_call.started", told) == data


def test_what_is_within_is_turned_too() -> None:
    outcome = {"type": "timed_out", "limit_s": 3}
    decision = {"id": "d", "policy_version": 1, "inputs": {"some_thing": 1}}
    data = {"item_id": "i", "outcome": outcome, "decision": decision}
    told = in_camel_case("item.completed", data)
    assert told["decision"] == {"id": "d", "policyVersion": 1, "inputs": {"some_thing": 1}}
    assert names(told) >= {"itemId", "policyVersion", "some_thing"}


def test_a_type_of_a_newer_release_stays_as_it_is() -> None:
    assert in_camel_case("agent.dreamt", {"of_what": 1}) == {"of_what": 1}
