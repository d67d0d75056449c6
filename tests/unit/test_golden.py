"""What a release wrote, every later one reads: one sample of every (type, schema) there ever was.

The files under `tests/golden/` are only ever added to. A new event, or a new shape of one,
adds its line to the newest file; a line that is there stays as it is.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from undivided.domain.events.catalogue import CATALOGUE, Event
from undivided.store.codec import decode_event, decode_tree, encode_event

GOLDEN = Path(__file__).parent.parent / "golden"
SAMPLES: list[dict[str, Any]] = [
    json.loads(line)
    for file in sorted(GOLDEN.glob("*.jsonl"))
    for line in file.read_text("utf-8").splitlines()
]


def stored(tree: Any) -> str:
    """JSON as Postgres hands it out."""
    return json.dumps(tree)


def decoded(sample: dict[str, Any]) -> Event:
    event = decode_event(sample["type"], sample["schema"], stored(sample["data"]), {})
    assert event is not None, f"{sample['type']} is not known any more"
    return event


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda s: f"{s['type']}-{s['schema']}")
def test_a_stored_event_decodes_for_ever(sample: dict[str, Any]) -> None:
    """Whatever was released is read, and what it said is still said."""
    event = decoded(sample)
    name, schema = CATALOGUE[type(event)]
    assert name == sample["type"]
    if schema == sample["schema"]:
        again, _ = encode_event(event)
        assert_kept(sample["data"], msgspec.json.decode(again))


@pytest.mark.parametrize(("name", "current"), CATALOGUE.values(), ids=str)
def test_every_type_and_schema_has_a_sample(name: str, current: int) -> None:
    """A name without a sample could change its shape unseen."""
    sampled = {sample["schema"] for sample in SAMPLES if sample["type"] == name}
    missing = set(range(1, current + 1)) - sampled
    assert not missing, f"add a line for {name} schema {missing} to the newest tests/golden file"


def test_what_postgres_refuses_is_in_the_samples() -> None:
    """The escapes are part of what was released."""
    noted = next(sample for sample in SAMPLES if sample["type"] == "memory.noted")
    content = decode_tree(stored(noted["data"]), {})["content"]
    assert content == "a\x00b \ud800 \x1a literal \\u0000"


def assert_kept(sample: Any, now: Any) -> None:
    """Every field of the sample is there and says the same; new ones may have joined."""
    if isinstance(sample, dict):
        for key, value in sample.items():
            assert_kept(value, now[key])
    else:
        assert sample == now
