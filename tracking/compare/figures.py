"""The figures of a comparison: ranges, costs, and the map of what pays. No global state."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

from tracking.compare.breakeven_map import map_of
from tracking.compare.comparison import Comparison
from tracking.compare.timings import Line
from tracking.drawing import COLOURS, MARKERS, SMALL, TEXT, TITLE, as_it_is, new_figure
from tracking.rows import Row

_LINE_IN = 0.20  # height of one bar
_MOST = 60  # lines in a figure: more cannot be read


def figures(comparison: Comparison) -> dict[str, Figure]:
    """By name: "ranges", and where costs were measured "costs" and "breakeven"."""
    lines = [line for line in comparison.lines if any(line.cells)][:_MOST]
    if not lines:
        return {}
    labels = [as_it_is(column.label) for column in comparison.columns]
    drawn = {"ranges": ranges(lines, labels)}
    if any(row is not None and row.c is not None for line in lines for row in line.cells):
        drawn["costs"] = costs(lines, labels)
    breakeven = map_of(lines, labels)
    return drawn | ({"breakeven": breakeven} if breakeven is not None else {})


def ranges(lines: Sequence[Line], labels: Sequence[str]) -> Figure:
    """A bar from the smallest to the largest ratio and a mark at the median, column by column."""
    figure = _tall(lines, labels)
    axes = figure.subplots()
    for place, colour, marker in _looks(labels):
        for line, height in zip(lines, _heights(lines, place, labels), strict=True):
            row = line.cells[place]
            if row is None or row.measured is None:
                continue
            axes.hlines(height, row.low or 0.0, row.high or 0.0, color=colour, linewidth=3)
            axes.plot(row.measured, height, color=colour, marker=marker, markersize=6)
    axes.axvline(1.0, color="black", linewidth=1.2, zorder=0)
    _from_zero(axes)
    _describe(axes, lines, "plain time / speculative time")
    _title(figure, "Speedup: median and range; right of the line is faster", labels)
    return figure


def costs(lines: Sequence[Line], labels: Sequence[str]) -> Figure:
    """c and v of each draft and k, column by column."""
    figure = _tall(lines, labels)
    left, right = figure.subplots(1, 2, sharey=True)
    _dots(left, lines, labels, lambda row: row.c)
    _dots(right, lines, labels, lambda row: row.v)
    left.set_xscale("log")
    left.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    _from_zero(right)
    for axes, name in ((left, "c: one drafted token (log scale)"), (right, "v: one verify pass")):
        axes.axvline(1.0, color="black", linewidth=1.2, zorder=0)
        _describe(axes, lines, name)
    _title(figure, "What a round costs, in target passes", labels)
    return figure


def _from_zero(axes: Axes) -> None:
    """To a little beyond the largest value, so that no mark is cut."""
    axes.set_xlim(0.0, 1.05 * max(1.0, axes.dataLim.x1))


def _tall(lines: Sequence[Line], labels: Sequence[str]) -> Figure:
    return new_figure(1.6 + len(lines) * max(0.30, _LINE_IN * len(labels)))


def _looks(labels: Sequence[str]) -> list[tuple[int, str, str]]:
    """Place, colour and marker of each column: the same in every figure."""
    return [
        (place, COLOURS[place % len(COLOURS)], MARKERS[place % len(MARKERS)])
        for place in range(len(labels))
    ]


def _heights(lines: Sequence[Line], place: int, labels: Sequence[str]) -> list[float]:
    """The first line is at the top, and in it the first column."""
    apart = 0.6 / max(1, len(labels) - 1)
    shift = (place - (len(labels) - 1) / 2) * (apart if len(labels) > 1 else 0.0)
    return [number + shift for number in range(len(lines))]


def _dots(
    axes: Axes, lines: Sequence[Line], labels: Sequence[str], value: Callable[[Row], float | None]
) -> None:
    for place, colour, marker in _looks(labels):
        for line, height in zip(lines, _heights(lines, place, labels), strict=True):
            row = line.cells[place]
            if row is not None and (x := value(row)) is not None:
                axes.plot(x, height, color=colour, marker=marker, markersize=6, linestyle="")


def _describe(axes: Axes, lines: Sequence[Line], x: str) -> None:
    axes.set_yticks(range(len(lines)), [as_it_is(line.name) for line in lines])
    axes.set_ylim(len(lines) - 0.4, -0.6)
    axes.set_xlabel(x, fontsize=TEXT)
    axes.tick_params(labelsize=SMALL)
    axes.grid(axis="x", alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    for place in range(1, len(lines)):
        ends = lines[place].series != lines[place - 1].series
        axes.axhline(place - 0.5, color="black", alpha=0.35 if ends else 0.08, linewidth=0.8)


def _title(figure: Figure, text: str, labels: Sequence[str]) -> None:
    figure.suptitle(text, fontsize=TITLE)
    handles = [
        Line2D([], [], color=colour, marker=marker, linewidth=3, label=labels[place])
        for place, colour, marker in _looks(labels)
    ]
    figure.legend(
        handles=handles, loc="outside lower center", ncols=min(3, len(labels)), fontsize=TEXT
    )
