"""What the codec promises: every string survives, every event fits, every old shape is read."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.events import ANY_JSON, ANY_TEXT, events
from undivided.domain.dialogue import ToolCall, Usage
from undivided.domain.errors import Corrupt
from undivided.domain.events.agents import MemoryNoted
from undivided.domain.events.catalogue import CATALOGUE, Event
from undivided.domain.events.sessions import ModelResponded, SessionOpened, ToolCallStarted
from undivided.store.codec import (
    BLOB_KEY,
    EVENT_LIMIT,
    blob_references,
    decode_event,
    decode_tree,
    encode,
    encode_event,
    escape_text,
    name_of,
    unescape_text,
)
from undivided.store.upcasts import UPCASTS, upcast

AWKWARD = re.compile("[\x00\ud800-\udfff]")


def there_and_back(event: Event) -> Event | None:
    """What a reader gets when `event` was stored, as jsonb gives its text back."""
    data, blobs = encode_event(event)
    name, schema = name_of(event)
    as_jsonb = json.dumps(json.loads(data), ensure_ascii=False)
    text = as_jsonb.replace("\x1a", "\\u001a")
    contents = {name: content.decode() for name, content in blobs.items()}
    return decode_event(name, schema, text, contents)


def said(text: str, **args: Any) -> ModelResponded:
    """A model response with `text` and one tool call of `args`."""
    return ModelResponded(
        turn_id="t", step=0, text=text, calls=(ToolCall("c", "tool", args),), usage=Usage(),
        model="m", epoch=1,
    )  # fmt: skip


class TestText:
    """Every Python string survives; Postgres never sees what it refuses."""

    @given(ANY_TEXT)
    @example("\x00")
    @example("\ud800 and \udfff")
    @example("a pair \ud83d\ude00 that stands apart")
    @example("\\u0000 spelt out, and \\u001a, and \\ud800")
    @example("\x1a0000")
    @example("\x1a\x1a001a")
    def test_escaping_is_undone_exactly(self, text: str) -> None:
        escaped = escape_text(text)
        assert AWKWARD.search(escaped) is None
        assert unescape_text(escaped) == text

    @given(ANY_TEXT, ANY_TEXT)
    def test_two_strings_never_become_one(self, one: str, other: str) -> None:
        assert (escape_text(one) == escape_text(other)) == (one == other)

    @given(ANY_JSON)
    @example({"\x1ablob": "looks like a reference"})
    @example({"\\u0000": ["\\u0000", "\x00"]})
    def test_any_tree_comes_back_as_it_was(self, tree: Any) -> None:
        stored = encode(tree).decode()
        assert AWKWARD.search(json.dumps(json.loads(stored), ensure_ascii=False)) is None
        assert decode_tree(stored, {}) == tree

    def test_plain_text_is_stored_as_it_is(self) -> None:
        """A literal backslash-u in a text costs nothing and changes nothing."""
        assert json.loads(encode({"a": "\\u0000 ü 😀"})) == {"a": "\\u0000 ü 😀"}


class TestEvents:
    """An event is what it was when it was appended."""

    @given(events())
    def test_every_event_comes_back_as_it_was(self, event: Event) -> None:
        assert there_and_back(event) == event

    @settings(deadline=None, max_examples=20)
    @given(ANY_TEXT, st.integers(0, 4), ANY_JSON)
    def test_so_does_one_with_too_much_in_it(self, salt: str, doublings: int, extra: Any) -> None:
        """Whatever is over the limit goes to blobs, and is there again when it is read."""
        text = (salt or "x") * 10_000 * 2**doublings
        assert there_and_back(said(text, extra=extra, again=[text])) == said(
            text, extra=extra, again=[text]
        )

    def test_a_stored_event_is_never_over_its_limit(self) -> None:
        event = said("ä" * 2_000_000, many=["y" * 3000] * 200)
        data, blobs = encode_event(event)
        assert len(data) <= EVENT_LIMIT
        assert blob_references(data.decode()) == set(blobs)
        assert there_and_back(event) == event

    def test_many_small_strings_fit_too(self) -> None:
        """No string is long, all of them together are."""
        event = said("\x00", many=[f"\x00{n:06d}" * 10 for n in range(8_000)], keys={"\x1a": 1})
        data, blobs = encode_event(event)
        assert len(data) <= EVENT_LIMIT
        assert blob_references(data.decode()) == set(blobs)
        assert there_and_back(event) == event

    def test_a_blob_is_named_by_its_content(self) -> None:
        _, blobs = encode_event(said("z" * EVENT_LIMIT))
        assert [hashlib.sha256(content).hexdigest() for content in blobs.values()] == list(blobs)

    def test_the_same_long_text_is_stored_once(self) -> None:
        _, blobs = encode_event(said("z" * EVENT_LIMIT, again="z" * EVENT_LIMIT))
        assert len(blobs) == 1

    def test_content_that_looks_like_a_reference_is_content(self) -> None:
        event = ToolCallStarted(
            turn_id="t", call_id="c", tool="tool", args={BLOB_KEY: "0" * 64}, effect="pure",
            idempotency_key="k", epoch=1,
        )  # fmt: skip
        data, blobs = encode_event(event)
        assert (blobs, blob_references(data.decode())) == ({}, set())
        assert there_and_back(event) == event

    def test_a_reference_to_nothing_is_corrupt(self) -> None:
        data, _ = encode_event(said("z" * EVENT_LIMIT))
        with pytest.raises(Corrupt, match="not stored"):
            decode_event("model.responded", 1, data.decode(), {})


class TestReadingWhatOthersWrote:
    """Newer and older releases write what this one must read."""

    def test_a_field_of_a_newer_release_is_passed_over(self) -> None:
        data = b'{"agent_id":"a","key":"k","content":"c","turn_id":null,"mood":"new"}'
        event = MemoryNoted(agent_id="a", key="k", content="c", turn_id=None)
        assert decode_event("memory.noted", 1, data.decode(), {}) == event

    def test_a_newer_schema_is_read_as_far_as_it_is_known(self) -> None:
        data = '{"session_id":"s","agent_id":"a","mood":"new"}'
        event = SessionOpened(session_id="s", agent_id="a")
        assert decode_event("session.opened", 9, data, {}) == event

    def test_a_type_of_a_newer_release_is_nothing(self) -> None:
        assert decode_event("agent.dreamt", 1, "{}", {}) is None

    def test_a_missing_field_is_corrupt(self) -> None:
        with pytest.raises(Corrupt, match=r"session\.opened"):
            decode_event("session.opened", 1, '{"session_id":"s"}', {})

    def test_an_old_schema_without_its_step_is_corrupt(self) -> None:
        with pytest.raises(Corrupt, match=r"no upcast of session\.opened from schema 0"):
            decode_event("session.opened", 0, '{"session_id":"s","agent_id":"a"}', {})

    def test_every_schema_below_the_current_has_its_step(self) -> None:
        for name, current in CATALOGUE.values():
            assert set(UPCASTS.get(name, {})) == set(range(1, current)), name

    def test_steps_are_taken_one_by_one(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def first(data: dict[str, Any]) -> dict[str, Any]:
            return {**data, "b": data["a"] + 1}

        def second(data: dict[str, Any]) -> dict[str, Any]:
            return {**data, "c": data["b"] + 1}

        monkeypatch.setitem(UPCASTS, "toy", {1: first, 2: second})
        assert upcast("toy", 1, 3, {"a": 1}) == {"a": 1, "b": 2, "c": 3}
        assert upcast("toy", 2, 3, {"b": 2}) == {"b": 2, "c": 3}


class TestTheCatalogue:
    """One table gives every event its name."""

    def test_every_event_is_in_it(self) -> None:
        assert set(get_args(Event)) == set(CATALOGUE)

    def test_no_name_is_given_twice(self) -> None:
        names = [name for name, _ in CATALOGUE.values()]
        assert len(names) == len(set(names))

    def test_names_are_words_and_never_class_paths(self) -> None:
        for name, schema in CATALOGUE.values():
            assert re.fullmatch(r"[a-z_]+\.[a-z_]+", name), name
            assert schema >= 1

    def test_events_are_frozen(self) -> None:
        for kind in CATALOGUE:
            assert kind.__struct_config__.frozen, kind

    @given(events())
    def test_events_are_equal_by_what_they_say(self, event: Event) -> None:
        assert msgspec.structs.replace(event) == event
