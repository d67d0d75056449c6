"""The arithmetic of the benchmark and the page it writes; what it measures is not for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from undivided.cli.bench.measuring import in_turns, percentile
from undivided.cli.bench.page import MARKER, rewrite, table
from undivided.cli.bench.rows import Row, as_json, cells, figure


def row(**given: Any) -> Row:
    """A row of which only some things matter."""
    return Row(**{"group": "g", "work": "w", "unit": "/s", "ours": 50.0, **given})


class TestARatio:
    """What is compared, and when it is enough."""

    def test_is_ours_by_theirs(self) -> None:
        """Half as many is a ratio of a half."""
        assert row(theirs=100.0).ratio == 0.5

    def test_reaches_a_lower_bound(self) -> None:
        """A rate must not be less than its bound."""
        assert row(theirs=100.0, at_least=0.5).reached is True
        assert row(theirs=100.0, at_least=0.51).reached is False

    def test_reaches_an_upper_bound(self) -> None:
        """A time must not be more than its bound."""
        assert row(unit="ms", theirs=25.0, at_most=2.0).reached is True
        assert row(unit="ms", theirs=25.0, at_most=1.9).reached is False

    def test_without_a_reference_our_own_figure_is_judged(self) -> None:
        """A bound in units holds for the figure itself."""
        assert row(at_least=49).reached is True
        assert row(at_most=49).reached is False

    def test_without_a_bound_nothing_is_judged(self) -> None:
        """Some rows only inform."""
        assert row(theirs=100.0).reached is None

    def test_of_nothing_is_not_reached(self) -> None:
        """A reference that did nothing proves nothing."""
        assert row(theirs=0.0, at_least=0.5).reached is False


class TestAnOrderOfRounds:
    """Sides take turns, and the median counts."""

    async def test_turns_round_after_each_round_and_leaves_the_first_out(self) -> None:
        """Nobody is always first; what warms up does not count."""
        order: list[str] = []
        figures = {"a": iter((1000.0, 1.0, 9.0, 2.0)), "b": iter((1000.0, 5.0, 6.0, 4.0))}

        async def side(name: str) -> float:
            order.append(name)
            return next(figures[name])

        found = await in_turns(3, lambda: side("a"), lambda: side("b"))
        assert found == [2.0, 5.0]
        assert "".join(order) == "abbaabba"

    @pytest.mark.parametrize(("percent", "value"), [(50, 3), (95, 5), (100, 5), (1, 1)])
    def test_a_percentile_is_a_value_that_was_measured(self, percent: int, value: int) -> None:
        """By the nearest rank."""
        assert percentile([5, 3, 1, 4, 2], percent) == value


class TestAPage:
    """What people read."""

    def test_shows_figures_with_the_digits_they_deserve(self) -> None:
        """Three digits say enough."""
        assert [figure(x) for x in (12345.6, 99.44, 0.7512, 0)] == ["12,346", "99.4", "0.751", "0"]

    def test_shows_a_row(self) -> None:
        """Work, ours, reference, ratio, bound, verdict."""
        one = row(theirs=100.0, reference="a plain one", at_least=0.75)
        assert cells(one) == ("w", "50 /s", "100 /s, a plain one", "0.5", "≥ 0.75", "no")
        assert "| w | 50 /s | 100 /s, a plain one | 0.5 | ≥ 0.75 | no |" in table([one])

    def test_tells_programs_the_same(self) -> None:
        """JSON has every field of a row."""
        (told,) = as_json([row(theirs=100.0, at_least=0.5)])
        assert told["ratio"] == 0.5
        assert told["reached"] is True

    def test_keeps_what_people_wrote_below_the_marker(self, tmp_path: Path) -> None:
        """A new run replaces the table, never the words about it."""
        path = tmp_path / "docs" / "benchmarks.md"
        rewrite(path, [row()], quick=True)
        path.write_text(path.read_text(encoding="utf-8") + "\nThe disk holds us back.\n", "utf-8")
        rewrite(path, [row(ours=60.0)], quick=False)
        text = path.read_text(encoding="utf-8")
        assert text.count(MARKER) == 1
        assert "60 /s" in text
        assert "50 /s" not in text
        assert text.endswith("The disk holds us back.\n")
