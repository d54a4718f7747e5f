"""The break-even map: how much must be accepted for a draft of some cost to pay, and who does.

With a constant chance a that a drafted token is accepted given the one before, a pass yields
Σ_{i=0..k} aⁱ tokens (Leviathan et al. 2023, eq. 1) and a round costs v + k c + o target passes.
Where they are equal nothing is gained. v and o are counted to the drafted tokens here,
c* = c + (v - 1 + o) / k, so that one line a k holds on every machine.

With k=auto drafts differ in how much a round drafts on average, and each average L has a line of
its own. Their panel has that of the longest, and a point's round of 1 + L c* target passes is
counted to that length: which side of the line it is on stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tracking.compare.timings import Line, drafted
from tracking.rows import Row

Numbers = npt.NDArray[np.float64]
GRID: Numbers = np.linspace(0.0, 1.0, 2001)


@dataclass(frozen=True)
class Point:
    """One draft and k in one column. `name` is the draft's, `length` the k that was asked for,
    `drafted` the tokens a round that its panel is drawn for; `a` is the acceptance that its yield
    stands for."""

    column: int
    name: str
    length: str
    drafted: float
    cost: float
    a: float


def constant_acceptance(tokens_per_pass: float, k: float) -> float:
    """a in [0, 1] with Σ_{i=0..k} aⁱ = `tokens_per_pass`; a yield above k + 1 counts as 1."""
    return float(np.interp(tokens_per_pass, yields(GRID, k), GRID))


def yields(a: Numbers, k: float) -> Numbers:
    """Tokens a pass: (1 - aᵏ⁺¹) / (1 - a), which for a whole k is the sum, and k + 1 at a = 1."""
    below = np.minimum(a, 1.0 - 1e-12)
    found: Numbers = np.where(a < 1.0, (1.0 - a ** (k + 1)) / (1.0 - below), k + 1.0)
    return found


def full_cost(row: Row) -> float | None:
    """c* = c + (v - 1 + o) / k in target passes, or None where a term is not known."""
    if not drafted(row) or row.c is None or row.v is None or row.o is None:
        return None
    return row.c + (row.v - 1.0 + row.o) / drafted(row)


def points(lines: Sequence[Line]) -> list[Point]:
    """Those whose costs were measured; of one k in order, auto last."""
    known = [
        (row, column, _name(row), cost)
        for line in lines
        for column, row in enumerate(line.cells)
        if row is not None and row.tokens_per_pass and (cost := full_cost(row)) is not None
    ]
    found = []
    for row, column, name, cost in sorted(known, key=lambda one: (one[0].auto, one[0].k)):
        longest = max(drafted(other) for other, *_ in known if other.length == row.length)
        a = constant_acceptance(row.tokens_per_pass or 1.0, longest)
        counted = cost * drafted(row) / longest
        found.append(Point(column, name, row.length, longest, counted, a))
    return found


def _name(row: Row) -> str:
    """The draft with its options; whose weights it has, its column tells."""
    options = [f"{k} {v}" for k, v in row.split.items() if k != "target" and v != "none"]
    return f"{row.draft} ({', '.join(options)})" if options else row.draft
