"""The completion marker: how a model says that it has handled its focus, and what people see.

Whether a reply is marked is read strictly: the marker itself, outside of what the model thinks
aloud. What people are shown is cleaned tolerantly: whatever looks like a marker goes, with the
line that it stands on; every other character stays. Cleaning is one small machine over the pieces
of a reply, so that a stream and the stored text say the same, however the pieces were cut.
"""

from __future__ import annotations

import re

from undivided.domain.outcomes import EMPTY_REPLY, MARKER_MISSING
from undivided.domain.scenarios import DELIBERATION, JUDGE

COMPLETION_MARKER = "<<HANDLE_COMPLETE>>"
"""What a model writes at the end of a reply to say that it has handled its focus."""

INSTRUCTION = (
    "When you have completely handled what you were asked to do in this turn, end your last reply "
    f"with {COMPLETION_MARKER} on a line of its own. Leave it out as long as something is left to "
    "do. People do not see it."
)

_UNMARKED = (JUDGE, DELIBERATION)
_THOUGHT = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL | re.IGNORECASE)
_WORD = "HANDLE_COMPLETE"
_BLANKS = 8
_LOOSE = re.compile(
    rf"<<?[ \t]{{0,{_BLANKS}}}{_WORD}[ \t]{{0,{_BLANKS}}}>(?P<full>>)?", re.IGNORECASE
)
_BEGUN = re.compile(
    rf"<<?[ \t]{{0,{_BLANKS}}}(?P<word>[A-Z_]*)(?P<blank>[ \t]{{0,{_BLANKS}}})", re.IGNORECASE
)
_BREAK = "\n\n"


def asks_for_marker(scenario: str) -> bool:
    """Whether a reply in this scenario has to end with the marker."""
    return scenario not in _UNMARKED


def instructed(instructions: str, scenario: str) -> str:
    """An agent's instructions, with the one about the marker where the scenario wants one."""
    return f"{instructions}\n\n{INSTRUCTION}" if asks_for_marker(scenario) else instructions


def is_marked(text: str) -> bool:
    """Whether a reply holds the marker as it is written, outside of `<think>`, closed or not."""
    return COMPLETION_MARKER in _THOUGHT.sub("\0", text)


def abnormal(invokes_model: bool, text: str | None, marked: bool) -> str | None:
    """What is missing of a reply without its marker; None where nothing is.

    `marked` says that there was one; a marker alone is a whole reply.
    """
    if not invokes_model or marked:
        return None
    return MARKER_MISSING if text and text.strip() else EMPTY_REPLY


def stripped(text: str) -> str:
    """`text` as people see it: without anything that looks like a marker."""
    withheld = Withheld()
    return withheld.feed(text) + withheld.finish()


class Withheld:
    """Takes a reply piece by piece, and answers of each what can be shown by now.

    What may still become a marker is held back, as is the white space before it. A marker in
    the middle leaves a paragraph's break, so that no two halves become another one.
    """

    def __init__(self) -> None:
        self._held = ""
        self._shown = False
        self._cut = False
        """A marker was the last thing there was, but for white space."""

    def feed(self, piece: str) -> str:
        """What can be shown once `piece` has come."""
        self._held += piece
        return self._settle(last=False)

    def finish(self) -> str:
        """The rest, when there is no more to come."""
        return self._settle(last=True)

    def _settle(self, last: bool) -> str:
        shown, rest, at = [], self._held, 0
        while (opened := rest.find("<", at)) >= 0:
            found = _LOOSE.match(rest, opened)
            if not last and _may_grow(rest, opened, found):
                break
            if found is None:
                at = opened + 1
                continue
            shown.append(self._words(_above(rest[:opened])))
            self._cut = True
            rest, at = rest[found.end() :], 0
        settled = rest if opened < 0 else rest[:opened]
        words = settled.rstrip()
        if last and not (self._cut and not words):
            words = settled
        self._held = "" if last else rest[len(words) :]
        shown.append(self._words(words))
        return "".join(shown)

    def _words(self, text: str) -> str:
        """Words to be shown; behind a marker they begin a paragraph of their own."""
        if self._cut:
            text = text.lstrip()
            if text and self._shown:
                text = _BREAK + text
        if text:
            self._shown, self._cut = True, False
        return text


def _above(text: str) -> str:
    """What stands before a marker, without the line that was begun for it."""
    return text.rstrip(" \t").removesuffix("\n")


def _may_grow(text: str, opened: int, found: re.Match[str] | None) -> bool:
    """Whether what begins at `opened` goes to the end of `text`, and may be a marker yet."""
    if found is not None:
        return found.end() == len(text) and found["full"] is None
    tail = text[opened:]
    return len(tail) < len(COMPLETION_MARKER) + 2 * _BLANKS and _begins_marker(tail)


def _begins_marker(tail: str) -> bool:
    begun = _BEGUN.fullmatch(tail)
    if begun is None:
        return False
    word = begun["word"].upper()
    return word == _WORD if word and begun["blank"] else _WORD.startswith(word)
