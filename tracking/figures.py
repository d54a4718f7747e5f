"""The three figures of a sweep. No global state: each call gives a figure of its own."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tracking.drawing import (
    GREY,
    HALO,
    SMALL,
    describe,
    draw,
    label,
    lines_of,
    new_figure,
    place_of,
)
from tracking.predictions import point_of, prediction
from tracking.rows import Row, noise


def figures(rows: Sequence[Row]) -> dict[str, Figure]:
    """By name: "acceptance", and where there are timings "speedup" and "prediction"."""
    drawn: dict[str, Figure] = {}
    if any(row.tokens_per_pass is not None for row in rows):
        drawn["acceptance"] = acceptance(rows)
    if any(row.measured is not None for row in rows):
        drawn["speedup"] = speedup(rows)
    if any(point_of(row) for row in rows):
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
