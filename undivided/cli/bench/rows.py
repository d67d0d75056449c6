"""What the benchmark finds: a row for each promise, with its figure, reference and verdict."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct


class Row(Struct, frozen=True, kw_only=True):
    """One promise and what was measured.

    `ours` and `theirs` are in `unit`; `theirs` is None where nothing is compared. `at_least`
    or `at_most` bounds the ratio of the two, or our own figure where there is no reference;
    without a bound the row only informs.
    """

    group: str
    work: str
    unit: str
    ours: float
    reference: str = ""
    theirs: float | None = None
    at_least: float | None = None
    at_most: float | None = None

    @property
    def ratio(self) -> float | None:
        """Ours by theirs; None without a reference."""
        return self.ours / self.theirs if self.theirs else None

    @property
    def reached(self) -> bool | None:
        """Whether the bound holds; None where there is none."""
        judged = self.ratio if self.theirs is not None else self.ours
        if judged is None:
            return False
        if self.at_least is not None:
            return judged >= self.at_least
        return None if self.at_most is None else judged <= self.at_most

    @property
    def target(self) -> str:
        """The bound in words."""
        unit = "" if self.theirs is not None else f" {self.unit}"
        if self.at_least is not None:
            return f"≥ {figure(self.at_least)}{unit}"
        return "" if self.at_most is None else f"≤ {figure(self.at_most)}{unit}"


HEADINGS = ("work", "ours", "reference", "ratio", "to reach", "reached")


def cells(row: Row) -> tuple[str, ...]:
    """A row as people read it, under `HEADINGS`."""
    theirs = "" if row.theirs is None else f"{figure(row.theirs)} {row.unit}, "
    ratio = "" if row.ratio is None else figure(row.ratio)
    verdict = {None: "", True: "yes", False: "no"}[row.reached]
    ours = f"{figure(row.ours)} {row.unit}"
    return (row.work, ours, f"{theirs}{row.reference}", ratio, row.target, verdict)


def as_json(rows: Sequence[Row]) -> list[dict[str, object]]:
    """Rows for programs."""
    return [
        {
            "group": row.group,
            "work": row.work,
            "unit": row.unit,
            "ours": row.ours,
            "reference": row.reference or None,
            "theirs": row.theirs,
            "ratio": row.ratio,
            "target": row.target or None,
            "reached": row.reached,
        }
        for row in rows
    ]


def figure(value: float) -> str:
    """A number with as many digits as it deserves: three, and thousands set apart."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"
