"""Every scenario of the behaviour catalogue that concerns attention is a test with its number.

A test carries a number in its name (`test_131_...`, `test_063_067_...`) or its class does in its
docstring (`Scenario 131`, `Scenarios 131, 132`).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parent.parent
HERE = Path(__file__).name

QUEUE = (1, 3, 4, 5, 7, 8, 9, 11, 12, 13, 15, 16, 17, 19, 20, 21, 23, 24, 27, 28, 29)
MERGING = (31, 32, 33, 35, 36, 37, 39, 40, 41, 43, 44, 45, 47, 48)
CONSOLIDATION = (49, 51, 52, 53, 55, 56, 57, 59, 60, 61)
RECOVERY = (63, 64, 65, 67, 68, 69, 71, 72, 73, 75, 76, 77)
ABNORMAL = (79, 80, 81, 83, 84, 85, 87)
RULES = (88, 89, 91, 92, 93, 95, 96, 97, 99, 100, 101, 103, 104, 105)
JUDGE = (107, 108, 109, 111, 112)
YIELDING = (113, 115, 116, 117, 119, 120, 121, 123, 124, 125, 127, 128, 129)
OUTCOMES = (131, 132, 133, 135, 136, 137, 139, 140, 141, 143, 144, 145, 147, 148, 149)
TRIAGE = (151, 152, 153, 155, 156, 157, 159, 160, 161, 163, 164, 165, 167, 168, 169, 171, 172)
TOOLS = (173, 175, 176, 177)
TIME = (179, 180, 181, 183, 184, 185, 187, 188, 189, 191, 192, 193, 195, 196, 197)
ROUTING = (199, 200, 201, 203, 204)
COMMENTS = (223, 224)
PEOPLE = (233, 235, 245)

NO_COUNTERPART = {
    25: "nobody waits in memory for mail, so there is no wait to cancel (tests/unit/test_queue.py)",
    225: "who is mentioned in a comment is told by the task, which is not there yet",
}
"""Scenarios about a mechanism of the catalogue that a durable queue does not have."""

WANTED = (
    *QUEUE, *MERGING, *CONSOLIDATION, *RECOVERY, *ABNORMAL, *RULES, *JUDGE, *YIELDING, *OUTCOMES,
    *TRIAGE, *TOOLS, *TIME, *ROUTING, *COMMENTS, *PEOPLE,
)  # fmt: skip

_NAME = re.compile(r"test_((?:\d{2,3}_(?:to_\d{2,3}_)?)+)")
_SAID = re.compile(r"[Ss]cenarios? ((?:\d{1,3}(?:, | and )?)+)")


def numbers_in(name: str) -> Iterator[int]:
    """The numbers that a test's name carries; `107_to_112` carries all between."""
    found = _NAME.match(name)
    parts = found[1].strip("_").split("_") if found else []
    for at, part in enumerate(parts):
        if part == "to":
            yield from range(int(parts[at - 1]) + 1, int(parts[at + 1]))
        else:
            yield int(part)


def carried() -> Iterator[int]:
    """Every number that some test carries."""
    for path in sorted(TESTS.rglob("test_*.py")):
        if path.name == HERE:
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            match node:
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    if name.startswith("test_"):
                        yield from numbers_in(name)
                        yield from _said(ast.get_docstring(node))
                case ast.ClassDef():
                    yield from _said(ast.get_docstring(node))


def _said(docstring: str | None) -> Iterator[int]:
    for found in _SAID.finditer(docstring or ""):
        yield from (int(number) for number in re.findall(r"\d+", found[1]))


CARRIED = frozenset(carried())


@pytest.mark.parametrize("number", WANTED)
def test_a_scenario_is_a_test(number: int) -> None:
    """With its number, so that whoever reads the catalogue finds the proof."""
    assert number in CARRIED


def test_nothing_is_listed_twice() -> None:
    """A scenario is wanted, or has no counterpart."""
    assert len(set(WANTED)) == len(WANTED)
    assert not set(WANTED) & set(NO_COUNTERPART)


def test_names_are_read_as_they_are_meant() -> None:
    """One number, several, and a range."""
    assert list(numbers_in("test_131_a_marked_reply")) == [131]
    assert list(numbers_in("test_063_067_what")) == [63, 67]
    assert list(numbers_in("test_107_to_109_each")) == [107, 108, 109]
    assert list(numbers_in("test_3_o_clock")) == []
