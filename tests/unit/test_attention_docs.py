"""docs/attention.md names the rules that there are."""

from __future__ import annotations

import re
from pathlib import Path

from undivided.domain.interrupts import JUDGE, OTHERWISE, RULES

DOCS = Path(__file__).parents[2] / "docs" / "attention.md"


def test_every_rule_is_in_the_table_in_its_order() -> None:
    """A rule that is added is explained, where it is asked."""
    cells = re.findall(r"^\| (`[^|]*) \|", DOCS.read_text("utf-8"), re.MULTILINE)
    told = [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]
    asked = [name for name, _ in RULES]
    assert told[: len(asked)] == asked
    assert told[len(asked) : len(asked) + 2] == [OTHERWISE.rule, JUDGE]
