"""One figure of the bench: its value in every turn, the goal it is held against, its raw times."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Literal

from rich.table import Table

SCHEMA = 1


@dataclass(frozen=True)
class Goal:
    """At least or at most a number; which of the two is part of it."""

    kind: Literal["at least", "at most"]
    value: float

    def reached(self, value: float) -> bool:
        return value >= self.value if self.kind == "at least" else value <= self.value


@dataclass(frozen=True)
class Figure:
    """`values` has one number a turn, in `unit`: "x" is a ratio, "%" a share (0.1 is 10%)."""

    part: str
    name: str
    values: tuple[float, ...]
    goal: Goal | None = None
    unit: Literal["x", "%"] = "x"
    raw: tuple[dict[str, Any], ...] = field(default=(), repr=False)

    @property
    def median(self) -> float:
        return median(self.values)

    @property
    def reached(self) -> bool | None:
        """Whether the median reaches the goal; None where there is none."""
        return None if self.goal is None else self.goal.reached(self.median)

    def to_dict(self) -> dict[str, Any]:
        goal = None if self.goal is None else {"kind": self.goal.kind, "value": self.goal.value}
        return {
            "part": self.part,
            "name": self.name,
            "unit": self.unit,
            "median": self.median,
            "min": min(self.values),
            "max": max(self.values),
            "goal": goal,
            "reached": self.reached,
            "values": list(self.values),
            "raw": list(self.raw),
        }


@dataclass(frozen=True)
class Part:
    """What one part of the bench found, and sentences that belong to it."""

    figures: tuple[Figure, ...] = ()
    notes: tuple[str, ...] = ()


def written(value: float, unit: str) -> str:
    return f"{value:.1%}" if unit == "%" else f"{value:.2f}×"


def table(figures: Sequence[Figure]) -> Table:
    """A line a figure: median, range over the turns, goal, reached or not."""
    drawn = Table(box=None, pad_edge=False, header_style="bold")
    drawn.add_column("figure", overflow="fold")
    for name in ("median", "range", "goal", ""):
        drawn.add_column(name, justify="right", no_wrap=True)
    part = None
    for one in figures:
        if one.part != part:
            part = one.part
            drawn.add_row(f"[bold]{part}[/bold]")
        low, high = written(min(one.values), one.unit), written(max(one.values), one.unit)
        goal = "" if one.goal is None else f"{one.goal.kind} {written(one.goal.value, one.unit)}"
        verdict = {None: "", True: "reached", False: "missed"}[one.reached]
        drawn.add_row(
            f"  {one.name}", written(one.median, one.unit), f"{low} - {high}", goal, verdict
        )
    return drawn


def summary(figures: Iterable[Figure]) -> str:
    """How many goals were reached, and which were not."""
    held = [one for one in figures if one.goal is not None]
    missed = [f"{one.part}: {one.name}" for one in held if not one.reached]
    text = f"{len(held) - len(missed)} of {len(held)} goals reached"
    return text + (f"; missed: {'; '.join(missed)}" if missed else "")
