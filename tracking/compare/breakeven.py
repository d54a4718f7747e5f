"""The break-even map: how much must be accepted for a draft of some cost to pay, and who does.

With a constant chance a that a drafted token is accepted given the one before, a pass yields
Σ_{i=0..k} aⁱ tokens (Leviathan et al. 2023, eq. 1) and a round costs v + k c + o target passes.
Where they are equal nothing is gained. v and o are counted to the drafted tokens here,
c* = c + (v - 1 + o) / k, so that one line a k holds on every machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from tracking.compare.timings import Line
from tracking.drawing import COLOURS, HALO, MARKERS, SMALL, TEXT, TITLE, new_figure
from tracking.rows import Row

_WIDE = 3  # panels beside each other
Numbers = npt.NDArray[np.float64]
_GRID: Numbers = np.linspace(0.0, 1.0, 2001)


@dataclass(frozen=True)
class Point:
    """One draft and k in one column. `a` is the acceptance that its yield stands for."""

    column: int
    series: str
    k: int
    cost: float
    a: float


def constant_acceptance(tokens_per_pass: float, k: int) -> float:
    """a in [0, 1] with Σ_{i=0..k} aⁱ = `tokens_per_pass`; a yield above k + 1 counts as 1."""
    return float(np.interp(tokens_per_pass, _yields(_GRID, k), _GRID))


def _yields(a: Numbers, k: int) -> Numbers:
    return np.sum([a**i for i in range(k + 1)], axis=0)


def full_cost(row: Row) -> float | None:
    """c* = c + (v - 1 + o) / k in target passes, or None where a term is not known."""
    if not row.k or row.c is None or row.v is None or row.o is None:
        return None
    return row.c + (row.v - 1.0 + row.o) / row.k


def points(lines: Sequence[Line]) -> list[Point]:
    """Those whose costs were measured."""
    found = []
    for line in lines:
        for column, row in enumerate(line.cells):
            if row is None or row.tokens_per_pass is None or (cost := full_cost(row)) is None:
                continue
            a = constant_acceptance(row.tokens_per_pass, row.k)
            found.append(Point(column, line.series, row.k, cost, a))
    return found


def map_of(lines: Sequence[Line], labels: Sequence[str]) -> Figure | None:
    """A panel a k: the shaded part pays. None where no costs were measured."""
    found = points(lines)
    if not found:
        return None
    ks = sorted({point.k for point in found})
    wide = min(_WIDE, len(ks)) if len(ks) != 4 else 2
    high = -(-len(ks) // wide)
    figure = new_figure(1.3 + 3.2 * high)
    panels = figure.subplots(high, wide, squeeze=False, sharex=True, sharey=True)
    most = 1.08 * max(1.0, *(point.cost for point in found))
    for place, axes in enumerate(panels.flat):
        if place < len(ks):
            _panel(axes, [point for point in found if point.k == ks[place]], most)
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
    k = here[0].k
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
    axes.set_title(f"k={k}", fontsize=TEXT, loc="left")
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
