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
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from tracking.compare.timings import Line, drafted
from tracking.drawing import COLOURS, HALO, MARKERS, SMALL, TEXT, TITLE, new_figure
from tracking.rows import Row

_WIDE = 3  # panels beside each other
Numbers = npt.NDArray[np.float64]
_GRID: Numbers = np.linspace(0.0, 1.0, 2001)


@dataclass(frozen=True)
class Point:
    """One draft and k in one column. `length` is the k that was asked for, `drafted` the tokens a
    round that its panel is drawn for; `a` is the acceptance that its yield stands for."""

    column: int
    series: str
    length: str
    drafted: float
    cost: float
    a: float


def constant_acceptance(tokens_per_pass: float, k: float) -> float:
    """a in [0, 1] with Σ_{i=0..k} aⁱ = `tokens_per_pass`; a yield above k + 1 counts as 1."""
    return float(np.interp(tokens_per_pass, _yields(_GRID, k), _GRID))


def _yields(a: Numbers, k: float) -> Numbers:
    """(1 - aᵏ⁺¹) / (1 - a), which for a whole k is the sum, and k + 1 at a = 1."""
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
        (row, column, line.series, cost)
        for line in lines
        for column, row in enumerate(line.cells)
        if row is not None and row.tokens_per_pass and (cost := full_cost(row)) is not None
    ]
    found = []
    for row, column, series, cost in sorted(known, key=lambda one: (one[0].auto, one[0].k)):
        longest = max(drafted(other) for other, *_ in known if other.length == row.length)
        a = constant_acceptance(row.tokens_per_pass or 1.0, longest)
        counted = cost * drafted(row) / longest
        found.append(Point(column, series, row.length, longest, counted, a))
    return found


def map_of(lines: Sequence[Line], labels: Sequence[str]) -> Figure | None:
    """A panel a k: the shaded part pays. None where no costs were measured."""
    found = points(lines)
    if not found:
        return None
    ks = list(dict.fromkeys(point.length for point in found))
    wide = min(_WIDE, len(ks)) if len(ks) != 4 else 2
    high = -(-len(ks) // wide)
    figure = new_figure(1.3 + 3.2 * high)
    panels = figure.subplots(high, wide, squeeze=False, sharex=True, sharey=True)
    most = 1.08 * max(1.0, *(point.cost for point in found))
    for place, axes in enumerate(panels.flat):
        if place < len(ks):
            _panel(axes, [point for point in found if point.length == ks[place]], most)
        else:
            axes.set_axis_off()
    for axes in panels[:, 0]:
        axes.set_ylabel("acceptance", fontsize=TEXT)
    for axes in panels[-1]:
        axes.set_xlabel("cost of a drafted token", fontsize=TEXT)
    figure.suptitle("Break-even: a draft in the shaded part pays", fontsize=TITLE)
    _legend(figure, found, labels)
    return figure


def _panel(axes: Axes, here: Sequence[Point], most: float) -> None:
    k = here[0].drafted
    cost = (_yields(_GRID, k) - 1.0) / k  # at which an acceptance breaks even
    axes.plot(cost, _GRID, color="black", linewidth=1.2)
    axes.fill_betweenx(_GRID, 0.0, cost, color="#009E73", alpha=0.13, linewidth=0)
    for point in here:
        axes.plot(
            max(point.cost, 0.0),
            point.a,
            color=COLOURS[point.column % len(COLOURS)],
            marker=MARKERS[point.column % len(MARKERS)],
            markersize=7,
            markeredgecolor="white",
            zorder=3,
        )
    for series in dict.fromkeys(point.series for point in here):
        own = [point for point in here if point.series == series]
        right = max(own, key=lambda point: point.cost)
        axes.annotate(
            series,
            (max(right.cost, 0.0), right.a),
            (7, -4) if right.cost < 0.75 * most else (-7, 7),
            textcoords="offset points",
            ha="left" if right.cost < 0.75 * most else "right",
            fontsize=SMALL,
            path_effects=HALO,
        )
    axes.set(xlim=(-0.03 * most, most), ylim=(-0.03, 1.14))
    auto = f" (up to {k:.1f})" if here[0].length == "auto" else ""
    axes.set_title(f"k={here[0].length}{auto}", fontsize=TEXT, loc="left")
    axes.tick_params(labelsize=SMALL)
    axes.grid(alpha=0.2)


def _legend(figure: Figure, found: Sequence[Point], labels: Sequence[str]) -> None:
    handles = [
        Line2D(
            [],
            [],
            color=COLOURS[place % len(COLOURS)],
            marker=MARKERS[place % len(MARKERS)],
            linestyle="",
            markersize=7,
            label=labels[place],
        )
        for place in sorted({point.column for point in found})
    ]
    figure.legend(
        handles=handles, loc="outside lower center", ncols=min(3, len(handles)), fontsize=TEXT
    )
