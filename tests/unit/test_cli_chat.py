"""A reply that grows in a terminal."""

from __future__ import annotations

import io
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from undivided.cli.chat.screen import Screen, landed
from undivided.cli.chat.spoken import Change, Spoken
from undivided.cli.client import RESUMED

Event = tuple[str, dict[str, Any], bool]


def piece(text: str, step: int = 0, *, recorded: bool = False, restart: bool = False) -> Event:
    """A piece of a response."""
    data = {"text": text, "step": step, **({"restart": True} if restart else {})}
    return "text_delta", data, recorded


def done(reply: str) -> Event:
    """The end of a reply."""
    return "done", {"reply": reply, "outcome": "completed"}, True


def tool() -> Event:
    """A tool is called."""
    return "tool_start", {"tool": "sleep", "args": {}}, True


BROKE: Event = (RESUMED, {}, False)


def changes(*events: Event) -> list[Change]:
    """What is shown after these events."""
    spoken = Spoken()
    taken = [spoken.take(*event) for event in events]
    return [change for change in taken if change is not None]


def read(*events: Event, columns: int = 20, lines: int = 24) -> str:
    """What stands on a terminal after these events."""
    out = io.StringIO()
    screen, spoken = Screen(out, (columns, lines)), Spoken()
    screen.prompt("Ada")
    for event in events:
        if change := spoken.take(*event):
            screen.show(change)
        if event[0] == "tool_start":
            screen.note("tool")
    screen.end()
    return emulated(out.getvalue(), columns)


def emulated(written: str, columns: int) -> str:
    """What a terminal would show: wraps, and obeys the few orders that a screen gives."""
    rows, row, column, at = [""], 0, 0, 0
    while at < len(written):
        if written.startswith("\x1b[", at):
            end = next(n for n in range(at + 2, len(written)) if written[n].isalpha())
            count, order, at = written[at + 2 : end], written[end], end + 1
            row -= int(count) if order == "A" else 0
            column += int(count) if order == "C" else 0
            if order == "J":
                rows = [*rows[:row], rows[row][:column]]
            continue
        character, at = written[at], at + 1
        if character == "\r":
            column = 0
            continue
        if character == "\n" or column == columns:
            row, column = row + 1, 0
            rows += [""] * (row + 1 - len(rows))
        if character != "\n":
            rows[row] = rows[row][:column].ljust(column) + character
            column += 1
    return "\n".join(rows)


class TestSpoken:
    """What a terminal is told to change."""

    def test_pieces_follow_each_other(self) -> None:
        """And the end adds nothing that was shown."""
        assert changes(piece("a"), piece("b"), done("ab")) == [
            Change("begin", "a"),
            Change("add", "b"),
        ]

    def test_what_pieces_did_not_bring_is_added(self) -> None:
        """By the record, or by the end."""
        assert changes(piece("a"), piece("b", recorded=True))[-1] == Change("add", "b")
        assert changes(piece("a"), done("abc"))[-1] == Change("add", "bc")
        assert changes(done("abc")) == [Change("begin", "abc")]

    def test_void_pieces_are_replaced(self) -> None:
        """The first piece was lost, so that the recorded text begins otherwise."""
        events = (piece("world"), piece("hello world", recorded=True, restart=True))
        assert changes(*events, done("hello world")) == [
            Change("begin", "world"),
            Change("instead", "hello world"),
        ]

    def test_after_a_break_nothing_is_shown_before_it_is_sure(self) -> None:
        """Pieces come again, or from the middle."""
        broken = (piece("hel"), BROKE, piece("lo w"))
        assert changes(*broken) == [Change("begin", "hel")]
        assert changes(*broken, piece("hello world", recorded=True, restart=True))[1:] == [
            Change("add", "lo world")
        ]
        assert changes(piece("hel"), BROKE, piece("hello"), tool())[1:] == [Change("add", "lo")]

    def test_each_step_begins_anew(self) -> None:
        """A tool stands between them."""
        assert changes(piece("look"), tool(), piece("found", 1), done("found")) == [
            Change("begin", "look"),
            Change("begin", "found"),
        ]

    def test_a_response_that_was_given_up_is_replaced_by_the_reply(self) -> None:
        """A turn tried again starts with the same step."""
        assert changes(piece("half a "), piece("the whole"), done("the whole")) == [
            Change("begin", "half a "),
            Change("add", "the whole"),
        ]
        assert changes(piece("half"), done("other"))[-1] == Change("instead", "other")

    @given(st.lists(st.text("ab", max_size=3)), st.text("ab", max_size=9), st.data())
    def test_the_recorded_text_is_what_is_read(
        self, pieces: list[str], text: str, data: st.DataObject
    ) -> None:
        """Whatever pieces came, whatever broke."""
        events = [piece(one) for one in pieces]
        for at in data.draw(st.lists(st.integers(0, len(events)), max_size=2)):
            events.insert(at, BROKE)
        recorded = piece(text, recorded=True, restart=True)
        expected = f"Ada> {text}"
        if text:
            assert read(*events, recorded, columns=99).rstrip("\n") == expected


class TestScreen:
    """A terminal that can be rewritten as far as it is in sight."""

    def test_a_reply_stands_behind_the_name(self) -> None:
        """Wrapped as the terminal does."""
        assert read(piece("0123456789"), piece("01234567"), columns=20) == (
            "Ada> 012345678901234\n567\n"
        )

    def test_what_wrapped_is_taken_back_whole(self) -> None:
        """Lines, wide characters and all."""
        void = piece("x" * 55 + "\nyy\n")
        again = piece("short", recorded=True, restart=True)
        assert read(void, again, columns=20).rstrip("\n") == "Ada> short"

    def test_what_is_out_of_sight_stays(self) -> None:
        """The right text comes below it."""
        void, again = piece("x\n" * 10), piece("short", recorded=True, restart=True)
        assert read(void, again, lines=8).rstrip("\n").splitlines()[-2:] == ["x", "short"]

    def test_a_tool_has_a_line_of_its_own(self) -> None:
        """And what follows begins below it."""
        events = (piece("look"), tool(), piece("found", 1), done("found"))
        assert read(*events) == "Ada> look\n[tool]\nfound\n"
        assert read(tool(), piece("found", 1)) == "Ada> \n[tool]\nfound\n"

    def test_terminal_orders_in_a_reply_are_spelled_out(self) -> None:
        """A model must not move the cursor."""
        assert "\\u001b[2J" in read(piece("\x1b[2J"))

    def test_where_a_cursor_lands(self) -> None:
        """A full line wraps only when more comes; wide characters take two columns."""
        assert landed("12345", 0, 5) == (0, 5)
        assert landed("123456", 0, 5) == (1, 1)
        assert landed("你好你", 0, 5) == (1, 2)
        assert landed("a\nb", 3, 80) == (1, 1)
