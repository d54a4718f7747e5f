"""The figure that holds the predicted speedups against the measured ones."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from tracking.drawing import GREY, SMALL, TEXT, TITLE, Line, lines_of, new_figure, spread
from tracking.rows import Row

Point = tuple[str, float, float, float, float]
"""k, predicted, measured, low, high."""
_REACH, _HIGH = 0.21, 0.08  # of a panel's width: how far a label reaches, and how high it is


def prediction(rows: Sequence[Row]) -> Figure:
    """Measured against predicted speedup, a panel a draft, with the range and the diagonal."""
    lines = [line for line in lines_of(rows) if any(point_of(row) for row in line.rows)]
    wide = min(3, len(lines))
    high = -(-len(lines) // wide)
    figure = new_figure(0.6 + 3.3 * high if wide > 1 else 4.6)
    panels = figure.subplots(high, wide, squeeze=False)
    for place, axes in enumerate(panels.flat):
        if place < len(lines):
            _panel(axes, lines[place])
        else:
            axes.set_axis_off()
    figure.suptitle(
        "Measured speedup (bar: range) against the predicted one (dashes: equal)",
        fontsize=TITLE,
    )
    for axes in panels[:, 0]:
        axes.set_ylabel("measured", fontsize=TEXT)
    panels[-1, (wide - 1) // 2].set_xlabel("predicted from the counts and costs", fontsize=TEXT)
    return figure


def _panel(axes: Axes, line: Line) -> None:
    points = [point for row in line.rows if (point := point_of(row))]
    every = [value for _, *values in points for value in values]
    middle = (min(every) + max(every)) / 2
    half = max(0.2, 0.8 * (max(every) - min(every)))
    limits = (max(0.0, middle - half), middle + half)
    axes.plot(limits, limits, color=GREY, linewidth=1.0, linestyle="--", zorder=1)
    for _, x, y, low, high in points:
        axes.errorbar(
            x,
            y,
            [[y - low], [high - y]],
            color=line.colour,
            marker=line.marker,
            capsize=3,
            zorder=3,
        )
    _label_points(axes, points, limits)
    axes.set_title(line.name, color=line.colour, fontsize=TEXT, fontweight="bold")
    axes.set(xlim=limits, ylim=limits, aspect="equal")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(4))
    axes.tick_params(labelsize=SMALL)
    axes.grid(alpha=0.25)


def _label_points(axes: Axes, points: Sequence[Point], limits: tuple[float, float]) -> None:
    """Each point's k beside it, on the side where no other point is."""
    width = limits[1] - limits[0]
    spots = [(x / width, y / width) for _, x, y, *_ in points]
    edge = limits[0] / width
    lefts = [
        _covers(spot, spots, _REACH)
        and not _covers(spot, spots, -_REACH)
        and spot[0] - _REACH > edge
        for spot in spots
    ]
    for left in (False, True):
        here = [point for point, side in zip(points, lefts, strict=True) if side == left]
        heights = spread([y for _, _, y, _, _ in here], 0.085 * width)
        for (k, x, *_), height in zip(here, heights, strict=True):
            axes.annotate(
                f"k={k}",
                (x, height),
                (-8 if left else 8, 0),
                textcoords="offset points",
                fontsize=SMALL,
                ha="right" if left else "left",
                va="center",
                zorder=1.5,  # a label must not hide a neighbour's marker
            )


def _covers(spot: tuple[float, float], spots: Sequence[tuple[float, float]], reach: float) -> bool:
    """Whether a label beside `spot` would lie on another one's marker; in widths of the panel."""
    low, high = sorted((spot[0] + reach / 4, spot[0] + reach))
    return any(low < x < high and abs(y - spot[1]) < _HIGH for x, y in spots)


def point_of(row: Row) -> Point | None:
    """None where the row was not timed, or nothing is predicted."""
    predicted = _predicted(row)
    if predicted is None or row.measured is None or row.low is None or row.high is None:
        return None
    return row.length, predicted, row.measured, row.low, row.high


def _predicted(row: Row) -> float | None:
    return row.predicted if row.predicted is not None else row.predicted_simple
