"""The break-even map drawn: a panel a k, a point a draft and column."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from tracking.compare.breakeven import GRID, Point, points, yields
from tracking.compare.timings import Line
from tracking.drawing import (
    COLOURS,
    HALO,
    MARKERS,
    SMALL,
    TEXT,
    TITLE,
    as_it_is,
    new_figure,
    spread,
)

_WIDE = 3  # panels beside each other
_ROOM = 0.7  # of a panel's width, to the right of which no name has room
_MARK, _RIM = 7, 6  # a mark's size, and how much larger one is that another lies on, in points
_NEAR = 0.03  # of a panel: marks that are closer lie on each other
_LINE = 0.075  # height of a line of text, in a panel's acceptance


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
    cost = (yields(GRID, k) - 1.0) / k  # at which an acceptance breaks even
    axes.plot(cost, GRID, color="black", linewidth=1.2)
    axes.fill_betweenx(GRID, 0.0, cost, color="#009E73", alpha=0.13, linewidth=0)
    for place, point in enumerate(here):
        over = sum(_meet(point, other, most) for other in here[place + 1 :])
        axes.plot(
            max(point.cost, 0.0),
            point.a,
            color=COLOURS[point.column % len(COLOURS)],
            marker=MARKERS[point.column % len(MARKERS)],
            markersize=_MARK + _RIM * over,  # it is seen around those that lie on it
            markeredgecolor="white",
            zorder=3,
        )
    _name_drafts(axes, here, most)
    axes.set(xlim=(-0.03 * most, most), ylim=(-0.03, 1.14))
    auto = f" (up to {k:.1f})" if here[0].length == "auto" else ""
    axes.set_title(f"k={here[0].length}{auto}", fontsize=TEXT, loc="left")
    axes.tick_params(labelsize=SMALL)
    axes.grid(alpha=0.2)


def _meet(one: Point, other: Point, most: float) -> bool:
    """Whether one's mark would hide much of the other's."""
    return abs(one.cost - other.cost) < _NEAR * most and abs(one.a - other.a) < _NEAR


def _name_drafts(axes: Axes, here: Sequence[Point], most: float) -> None:
    """Each name once, right of the draft's points or where there is no room, left of them; names
    of neighbours are moved apart."""
    ranked = sorted(here, key=lambda point: point.cost)
    last = {point.name: point for point in ranked}
    first = {point.name: point for point in reversed(ranked)}
    for left in (True, False):
        names = [name for name, point in last.items() if (point.cost < _ROOM * most) is left]
        side = [(last if left else first)[name] for name in names]
        heights = spread([point.a for point in side], _LINE)
        for point, height in zip(side, heights, strict=True):
            beside = 7 + _RIM / 2 * (sum(_meet(point, other, most) for other in here) - 1)
            told = axes.annotate(
                as_it_is(point.name),
                (max(point.cost, 0.0), height),
                (beside if left else -beside, 0),
                textcoords="offset points",
                ha="left" if left else "right",
                va="center",
                fontsize=SMALL,
                path_effects=HALO,
                zorder=4,
            )
            told.set_in_layout(False)  # panels stay as wide, however long a name is


def _legend(figure: Figure, found: Sequence[Point], labels: Sequence[str]) -> None:
    handles = [
        Line2D(
            [],
            [],
            color=COLOURS[place % len(COLOURS)],
            marker=MARKERS[place % len(MARKERS)],
            linestyle="",
            markersize=_MARK,
            label=labels[place],
        )
        for place in sorted({point.column for point in found})
    ]
    figure.legend(
        handles=handles, loc="outside lower center", ncols=min(3, len(handles)), fontsize=TEXT
    )
