"""The completion marker: asked for, seen strictly, and never shown."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from undivided.domain.marker import (
    COMPLETION_MARKER,
    Withheld,
    abnormal,
    asks_for_marker,
    instructed,
    is_marked,
    stripped,
)
from undivided.domain.outcomes import EMPTY_REPLY, MARKER_MISSING
from undivided.domain.scenarios import SCENARIOS

LOOSE = re.compile(r"<[ \t]{0,8}HANDLE_COMPLETE[ \t]{0,8}>", re.IGNORECASE)
PARTS = st.sampled_from(
    ["<", "<<", ">", ">>", " ", "\n", "HANDLE", "_", "complete", "HANDLE_COMPLETE", "done", "a < b"]
)
MARKERS = st.sampled_from(
    [COMPLETION_MARKER, "<HANDLE_COMPLETE>", "<< handle_complete >>", "<Handle_Complete>>"]
)
REPLIES = st.lists(st.one_of(PARTS, MARKERS, st.text(max_size=5))).map("".join)


def chunked(text: str, sizes: list[int]) -> list[str]:
    """`text` in pieces of these sizes, and what is left as the last one."""
    pieces, at = [], 0
    for size in sizes:
        pieces.append(text[at : at + size])
        at += size
    return [*pieces, text[at:]]


class TestInstruction:
    """Whoever has to write it is told so."""

    def test_all_but_judge_and_deliberation_ask_for_it(self) -> None:
        """Those two answer in a form of their own."""
        silent = [scenario for scenario in SCENARIOS if not asks_for_marker(scenario)]
        assert silent == ["deliberation", "judge"]

    def test_it_stands_behind_the_agents_own_instructions(self) -> None:
        """And quotes the marker as it is to be written."""
        told = instructed("Be kind.", "a2a")
        assert told.startswith("Be kind.\n\n")
        assert COMPLETION_MARKER in told
        assert instructed("Be kind.", "judge") == "Be kind."


class TestMarked:
    """Seen only as it is written, and only where the model speaks."""

    @pytest.mark.parametrize("text", ["done <<HANDLE_COMPLETE>>", "<<HANDLE_COMPLETE>>\nand more",
                                      "<think>hm</think>done<<HANDLE_COMPLETE>>"])  # fmt: skip
    def test_as_it_is_written(self, text: str) -> None:
        """Anywhere in what it says."""
        assert is_marked(text)

    @pytest.mark.parametrize(
        "text",
        [
            "done", "<HANDLE_COMPLETE>", "<<handle_complete>>",
            "<think>then <<HANDLE_COMPLETE>></think>done", "<THINK>x<<HANDLE_COMPLETE>>",
            "<<HANDLE_<think></think>COMPLETE>>",
        ],
    )  # fmt: skip
    def test_not_in_thoughts_nor_another_way(self, text: str) -> None:
        """An unclosed thought goes to the end."""
        assert not is_marked(text)

    def test_87_a_loose_marker_is_no_marker_but_is_stripped(self) -> None:
        """It was meant as one, so nobody should read it."""
        text = "done < handle_complete >"
        assert not is_marked(text)
        assert stripped(text) == "done"


class TestAbnormal:
    """What is missing of a reply."""

    def test_79_a_type_that_asks_no_model_misses_nothing(self) -> None:
        """Whatever was said."""
        assert abnormal(False, "", False) is None
        assert abnormal(False, "anything", False) is None

    @pytest.mark.parametrize("text", [None, "", " \n"])
    def test_80_85_an_empty_reply(self, text: str | None) -> None:
        """Of an agent's message as of a heartbeat."""
        assert abnormal(True, text, False) == EMPTY_REPLY == "empty reply from LLM-invoking item"

    def test_81_84_a_reply_without_marker(self) -> None:
        """A person's chat is no exception here."""
        missing = "completion marker missing from reply"
        assert abnormal(True, "text", False) == MARKER_MISSING == missing

    def test_a_marker_alone_is_a_reply(self) -> None:
        """A heartbeat often has nothing else to say."""
        assert abnormal(True, "", True) is None


class TestStripped:
    """What people see."""

    @pytest.mark.parametrize(
        ("text", "shown"),
        [
            ("done\n<<HANDLE_COMPLETE>>", "done"),
            ("done <HANDLE_COMPLETE>\n\n", "done"),
            ("done \n\n<<HANDLE_COMPLETE>>", "done \n"),
            ("<<HANDLE_COMPLETE>>", ""),
            ("<<HANDLE_COMPLETE>>\nhello", "hello"),
            ("one <<HANDLE_COMPLETE>> two <<Handle_Complete>>", "one\n\ntwo"),
            ("a<<HANDLE_COMPLETE>>>b", "a\n\n>b"),
            ("<<HANDLE_<<HANDLE_COMPLETE>>COMPLETE>>", "<<HANDLE_\n\nCOMPLETE>>"),
            ("x << HANDLE", "x << HANDLE"),
            ("kept as it is \n", "kept as it is \n"),
        ],
    )
    def test_markers_go_and_all_else_stays(self, text: str, shown: str) -> None:
        """Two halves never become a new one."""
        assert stripped(text) == shown

    @given(REPLIES)
    def test_nothing_that_looks_like_one_is_left(self, text: str) -> None:
        """Whatever a model makes up."""
        assert LOOSE.search(stripped(text)) is None

    @given(REPLIES)
    def test_all_else_comes_through(self, text: str) -> None:
        """Every character of it, white space at its end included; with and without a marker."""
        if LOOSE.search(text) is None:
            assert stripped(text) == text
            assert stripped(f"{text}\n{COMPLETION_MARKER}") == text


class TestWithheld:
    """A reply that is shown while it is written."""

    @given(REPLIES, st.lists(st.integers(0, 6)))
    def test_any_chunking_shows_the_same_in_the_end(self, text: str, sizes: list[int]) -> None:
        """The stream says what is stored."""
        withheld = Withheld()
        shown = [withheld.feed(piece) for piece in chunked(text, sizes)]
        assert "".join(shown) + withheld.finish() == stripped(text)

    @given(st.text(st.characters(exclude_characters="<")), MARKERS)
    def test_no_part_of_a_marker_is_ever_shown(self, before: str, marker: str) -> None:
        """Also if it comes letter by letter."""
        withheld = Withheld()
        shown = "".join(withheld.feed(letter) for letter in before + marker)
        assert shown + withheld.finish() == before.rstrip(" \t").removesuffix("\n")

    def test_words_are_not_kept_back(self) -> None:
        """A reader sees them as they come; only what may become a marker waits."""
        withheld = Withheld()
        pieces = ["Hel", "lo ", "you: 1 <", " 2", "\n<<HAN", "D", "SOME", "\n"]
        shown = [withheld.feed(piece) for piece in pieces]
        assert shown == ["Hel", "lo", " you: 1", " < 2", "", "", "\n<<HANDSOME", ""]
        assert withheld.finish() == "\n"

    def test_a_megabyte_takes_a_moment(self) -> None:
        """Whatever it is full of."""
        for filling in (" ", "<", "< ", "<<HANDLE_", COMPLETION_MARKER):
            withheld, text = Withheld(), filling * (1_000_000 // len(filling))
            for at in range(0, len(text), 4_096):
                withheld.feed(text[at : at + 4_096])
            withheld.finish()
