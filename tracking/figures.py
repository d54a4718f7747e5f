"""The three figures of a sweep. No global state: each call gives a figure of its own."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from tracking.drawing import (
    GREY,
    HALO,
    SMALL,
    TEXT,
    TITLE,
    Line,
    describe,
    draw,
    label,
    lines_of,
    new_figure,
    place_of,
    spread,
)
from tracking.rows import Row, noise

_Point = tuple[str, float, float, float, float]  # k, predicted, measured, low, high
_REACH, _HIGH = 0.21, 0.08  # of a panel's width: how far a label reaches, and how high it is


def figures(rows: Sequence[Row]) -> dict[str, Figure]:
    """By name: "acceptance", and where there are timings "speedup" and "prediction"."""
    drawn: dict[str, Figure] = {}
    if any(row.tokens_per_pass is not None for row in rows):
        drawn["acceptance"] = acceptance(rows)
    if any(row.measured is not None for row in rows):
        drawn["speedup"] = speedup(rows)
    if any(row.measured is not None and _predicted(row) is not None for row in rows):
        drawn["prediction"] = prediction(rows)
    return drawn


def acceptance(rows: Sequence[Row]) -> Figure:
    """Acceptance and tokens per pass against k: a line a draft, a small dot a seed."""
    rows = [row for row in rows if row.tokens_per_pass is not None]
    figure = new_figure(4.6)
    left, right = figure.subplots(1, 2)
    draw(left, rows, lambda row: row.acceptance, lambda row: row.seeds_acceptance)
    left.set_ylim(0.0, 1.04)
    describe(left, "Drafted tokens accepted (dots: seeds)", "acceptance rate")
    label(left, rows, lambda row: row.acceptance)
    draw(right, rows, lambda row: row.tokens_per_pass, lambda row: row.seeds_tokens_per_pass)
    right.set_ylim(0.0, 1.08 * right.get_ylim()[1])
    right.axhline(1.0, color=GREY, linewidth=1.0, linestyle=":", zorder=1)
    describe(right, "Yield of a target pass (dots: seeds)", "tokens per pass (plain: 1)")
    label(right, rows, lambda row: row.tokens_per_pass)
    return figure


def speedup(rows: Sequence[Row]) -> Figure:
    """The measured ratios against k: their median, their range as a band, and 1.0."""
    rows = [row for row in rows if row.measured is not None]
    figure = new_figure(5.2)
    axes = figure.subplots()
    for line in lines_of(rows):
        known = [row for row in line.rows if row.low is not None and row.high is not None]
        at = [place_of(rows, row) for row in known]
        low, high = [row.low or 0.0 for row in known], [row.high or 0.0 for row in known]
        axes.fill_between(at, low, high, color=line.colour, alpha=0.16, linewidth=0)
        axes.vlines(at, low, high, color=line.colour, alpha=0.55, linewidth=2)
    draw(axes, rows, lambda row: row.measured, lambda row: ())
    tops = [row.high or 0.0 for row in rows] + [row.null_high or 0.0 for row in rows]
    axes.set_ylim(0.0, 1.06 * max(1.0, *tops))
    axes.axhline(1.0, color="black", linewidth=1.2, zorder=1)
    describe(
        axes,
        "Measured speedup: median (line) and range (band); above 1 is faster",
        "plain time / speculative time",
    )
    label(axes, rows, lambda row: row.measured)
    _noise(axes, rows)
    return figure


def prediction(rows: Sequence[Row]) -> Figure:
    """Measured against predicted speedup, a panel a draft, with the range and the diagonal."""
    lines = [line for line in lines_of(rows) if any(_point(row) for row in line.rows)]
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
    points = [point for row in line.rows if (point := _point(row))]
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


def _label_points(axes: Axes, points: Sequence[_Point], limits: tuple[float, float]) -> None:
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


def _point(row: Row) -> _Point | None:
    """k, predicted, measured, low, high."""
    predicted = _predicted(row)
    if predicted is None or row.measured is None or row.low is None or row.high is None:
        return None
    return row.length, predicted, row.measured, row.low, row.high


def _predicted(row: Row) -> float | None:
    return row.predicted if row.predicted is not None else row.predicted_simple


def _noise(axes: Axes, rows: Sequence[Row]) -> None:
    """What plain decoding gives against itself: ratios in here mean nothing."""
    bounds = noise(rows)
    if bounds is None:
        return
    low, high = bounds
    axes.axhspan(low, high, color="black", alpha=0.10, linewidth=0, zorder=0)
    axes.annotate(
        f"noise: plain decoding against itself {low:.2f}-{high:.2f}",
        (1.0, high),
        xycoords=("axes fraction", "data"),
        xytext=(-4, 3),
        textcoords="offset points",
        ha="right",
        zorder=6,
        color=GREY,
        fontsize=SMALL,
        path_effects=HALO,
    )
