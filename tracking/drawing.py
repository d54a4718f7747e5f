"""How the figures look: colours, markers, sizes, and names written at the lines' ends.

Colours are Okabe and Ito's, which colour-blind readers tell apart, and every draft also has a
marker of its own. A figure is 900 pixels wide, about what MLflow's page gives it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

from tracking.printable import printable
from tracking.rows import Row

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D4F")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
GREY = "#555555"
HALO = [withStroke(linewidth=2.5, foreground="white")]  # keeps a label legible over a line
# Large enough to be read where MLflow shrinks the figure to two thirds, beside its side panels.
TITLE, TEXT, SMALL = 14, 12.5, 11
_WIDTH_IN, _DPI = 9.0, 100


@dataclass(frozen=True, slots=True)
class Line:
    """One draft's rows by k, and how they are drawn."""

    name: str
    colour: str
    marker: str
    rows: tuple[Row, ...]


def new_figure(height_in: float) -> Figure:
    return Figure(figsize=(_WIDTH_IN, height_in), dpi=_DPI, layout="constrained")


def as_it_is(text: str) -> str:
    """A name for a figure, where a pair of dollar signs would be taken for a formula, and no font
    has a sign for what a terminal obeys."""
    return printable(text).replace("$", r"\$")


def lines_of(rows: Sequence[Row]) -> list[Line]:
    """The same draft looks the same in each figure of a sweep."""
    names = list(dict.fromkeys(row.series for row in rows))
    return [
        Line(
            name,
            COLOURS[place % len(COLOURS)],
            MARKERS[place % len(MARKERS)],
            tuple(row for row in rows if row.series == name),
        )
        for place, name in enumerate(names)
    ]


def _ks(rows: Sequence[Row]) -> list[str]:
    """Every k that was asked for, the lengths first and auto last."""
    asked = {(row.auto, row.k if not row.auto else 0, row.length) for row in rows}
    return [length for *_, length in sorted(asked)]


def place_of(rows: Sequence[Row], row: Row) -> float:
    """The values of k stand side by side, each as far from the next, whatever they are.

    Drafts stand a little apart, so that their ranges can be told apart.
    """
    lines = list(dict.fromkeys(other.series for other in rows))
    apart = 0.05 * (lines.index(row.series) - (len(lines) - 1) / 2)
    return _ks(rows).index(row.length) + apart


def draw(
    axes: Axes,
    rows: Sequence[Row],
    value: Callable[[Row], float | None],
    seeds: Callable[[Row], Sequence[float]],
) -> None:
    for line in lines_of(rows):
        known = [(place_of(rows, row), y) for row in line.rows if (y := value(row)) is not None]
        axes.plot(
            [x for x, _ in known],
            [y for _, y in known],
            color=line.colour,
            marker=line.marker,
            markersize=6,
            linewidth=1.8,
        )
        for row in line.rows:
            dots = seeds(row)
            axes.scatter([place_of(rows, row)] * len(dots), dots, s=9, color=line.colour, alpha=0.5)
    ks = _ks(rows)
    axes.set_xticks(range(len(ks)), ks)
    axes.set_xlim(-0.3, len(ks) - 0.7)


def describe(axes: Axes, title: str, y: str) -> None:
    axes.set_title(title, loc="left", fontsize=TITLE)
    axes.set_ylabel(y, fontsize=TEXT)
    axes.set_xlabel("k (tokens drafted in a round)", fontsize=TEXT)
    axes.tick_params(labelsize=SMALL)
    axes.grid(axis="y", alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)


def label(axes: Axes, rows: Sequence[Row], value: Callable[[Row], float | None]) -> None:
    """Each line's name at its right end, moved apart where lines end close together."""
    ends = []
    for line in lines_of(rows):
        known = [y for row in line.rows if (y := value(row)) is not None]
        if known:
            ends.append((known[-1], line))
    bottom, top = axes.get_ylim()
    heights = spread([y for y, _ in ends], 0.075 * (top - bottom))
    for (_, line), height in zip(ends, heights, strict=True):
        axes.annotate(
            line.name,
            (1.0, height),
            xycoords=("axes fraction", "data"),
            xytext=(4, 0),
            textcoords="offset points",
            color=line.colour,
            fontsize=TEXT,
            fontweight="bold",
            va="center",
            annotation_clip=False,
        )


def spread(values: Sequence[float], gap: float) -> list[float]:
    """`values` moved as little as needed to be `gap` apart, in the order given."""
    order = sorted(range(len(values)), key=lambda place: values[place])
    groups: list[list[int]] = []
    for place in order:
        groups.append([place])
        while len(groups) > 1 and _bottom(groups[-1], values, gap) < _top(groups[-2], values, gap):
            last = groups.pop()
            groups[-1] += last
    moved = list(values)
    for group in groups:
        for step, place in enumerate(group):
            moved[place] = _bottom(group, values, gap) + gap / 2 + gap * step
    return moved


def _bottom(group: list[int], values: Sequence[float], gap: float) -> float:
    middle = sum(values[place] for place in group) / len(group)
    return middle - gap * len(group) / 2


def _top(group: list[int], values: Sequence[float], gap: float) -> float:
    return _bottom(group, values, gap) + gap * len(group)
