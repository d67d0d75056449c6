"""`undivided bench` runs: one row, on servers of its own. How fast it is decides nothing."""

from __future__ import annotations

import json
import subprocess
import sys


def test_one_row_is_measured_beside_its_reference() -> None:
    """`bench --quick --rows append --json` answers with both figures and their ratio."""
    done = subprocess.run(
        (sys.executable, "-m", "undivided", "bench", "--quick", "--rows", "append", "--json"),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert rows[0]["group"] == "append"
    assert rows[0]["ours"] > 0
    assert rows[0]["theirs"] > 0
    assert rows[0]["ratio"] == rows[0]["ours"] / rows[0]["theirs"]


def test_unknown_rows_are_refused_before_anything_starts() -> None:
    """The sentence says which rows there are."""
    done = subprocess.run(
        (sys.executable, "-m", "undivided", "bench", "--rows", "nonsense"),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert "one of: append, accept" in " ".join(done.stderr.split())
