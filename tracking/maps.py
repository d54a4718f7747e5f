"""Two figures that explain: where a round's time goes, and what acceptance would be enough."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tracking.drawing import COLOURS, GREY, MARKERS, SMALL, TEXT, TITLE, new_figure
from tracking.rows import Row

_PARTS = (("verify pass", "#56B4E9"), ("drafting", "#E69F00"), ("the loop", "#999999"))
_MOST_ROWS = 48
_TOP = 1.2  # of acceptance; what is above 1 cannot be had
_LEVELS = (0.2, 0.4, 0.6, 0.8)


def shares(rows: Sequence[Row]) -> Figure | None:
    """What a round costs, in target passes, part by part; a dot where its tokens are.

    A dot beyond the end of its bar: the round yields more than it costs. None without costs.
    """
    known = [row for row in rows if None not in (row.v, row.c, row.o, row.tokens_per_pass)]
    known = known[:_MOST_ROWS]
    if not known:
        return None
    figure = new_figure(1.5 + 0.27 * len(known))
    axes = figure.subplots()
    places = np.arange(len(known))
    left = np.zeros(len(known))
    for (name, colour), widths in zip(_PARTS, _widths(known), strict=True):
        axes.barh(places, widths, left=left, color=colour, height=0.72, label=name)
        left += widths
    tokens = [row.tokens_per_pass or 0.0 for row in known]
    axes.scatter(tokens, places, color="black", s=26, zorder=3, label="tokens it yields")
    axes.set_yticks(places, [row.name for row in known], fontsize=SMALL)
    axes.invert_yaxis()
    axes.set_title(
        "Where a round's time goes; a dot beyond its bar pays", loc="left", fontsize=TITLE
    )
    axes.set_xlabel("target passes (and tokens)", fontsize=TEXT)
    axes.tick_params(axis="x", labelsize=SMALL)
    axes.grid(axis="x", alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlim(0.0, 1.04 * max(*left, *tokens))
    axes.set_ylim(len(known) - 0.4, -0.6)
    figure.legend(loc="outside lower center", ncols=4, fontsize=SMALL, frameon=False)
    return figure


def _widths(rows: Sequence[Row]) -> list[list[float]]:
    drafting = [(row.draft_length or row.k) * (row.c or 0.0) for row in rows]
    return [[row.v or 0.0 for row in rows], drafting, [row.o or 0.0 for row in rows]]


def break_even(found: Mapping[str, Any]) -> Figure | None:
    """The acceptance from which speculation pays, over draft cost and k, and the sweep's drafts.

    `found` is the sweep's advice. None where it has no map of two k or more.
    """
    grid, drafts = found.get("map") or {}, found.get("drafts") or []
    if len(grid.get("k", ())) < 2:
        return None
    figure = new_figure(5.4)
    axes = figure.subplots()
    c_end = 1.1 * max([0.3, *(one["c"] for draft in drafts for one in draft["at"])])
    _field(figure, axes, grid, c_end)
    for place, draft in enumerate(drafts):
        _points(axes, draft, place)
    title = "Acceptance from which speculation pays here; filled: the draft's alpha is enough"
    axes.set_title(title, loc="left", fontsize=TEXT)
    axes.set_xlabel("c: a draft token, in target passes", fontsize=TEXT)
    axes.set_ylabel("k", fontsize=TEXT)
    axes.set_yticks(sorted({one["k"] for draft in drafts for one in draft["at"]}))
    axes.tick_params(labelsize=SMALL)
    figure.legend(loc="outside lower center", ncols=3, fontsize=SMALL, frameon=False)
    return figure


def _field(figure: Figure, axes: Axes, grid: Mapping[str, Any], c_end: float) -> None:
    """The acceptance needed in shades of grey, so that the drafts' colours stand out."""
    shown = np.array(grid["c"]) <= c_end
    c, needs = np.array(grid["c"])[shown], np.array(grid["needs"])[:, shown]
    k = np.array([grid["k"][0] - 0.5, *grid["k"], grid["k"][-1] + 0.5])  # room around the points
    needs = np.vstack([needs[:1], needs, needs[-1:]])
    levels = np.arange(0.0, _TOP + 0.05, 0.1)
    image = axes.contourf(c, k, np.minimum(needs, _TOP), levels=levels, cmap="Greys", vmax=2.0)
    lines = axes.contour(c, k, needs, levels=_LEVELS, colors=GREY, linewidths=1.0)
    limit = axes.contour(c, k, needs, levels=[1.0], colors="black", linewidths=2.0)
    for line in (lines, limit):
        axes.clabel(line, fmt="%.1f", fontsize=SMALL)
    if needs[:, -1].min() >= levels[-2]:  # costs beyond the map need more still
        red, green, blue, _ = np.ravel(image.cmap(image.norm(levels[-2:].mean())))
        axes.set_facecolor((red, green, blue))
    bar = figure.colorbar(image, ax=axes)
    bar.set_label("acceptance needed (above 1: none is enough)", fontsize=SMALL)
    bar.ax.tick_params(labelsize=SMALL)


def _points(axes: Axes, draft: Mapping[str, Any], place: int) -> None:
    """A draft at each k: filled where its alpha is enough there."""
    colour, marker = COLOURS[place % len(COLOURS)], MARKERS[place % len(MARKERS)]
    name = " ".join([draft["draft"], *(f"{k}={v}" for k, v in draft["setting"].items())])
    label = f"{name} (alpha {draft['alpha']:.2f})"
    axes.plot([], [], color=colour, marker=marker, linestyle="", label=label)
    for one in draft["at"]:
        fill = colour if draft["alpha"] >= one["needs"] else "white"
        axes.plot(
            one["c"],
            one["k"],
            color=colour,
            marker=marker,
            markersize=9,
            markerfacecolor=fill,
            markeredgewidth=2,
            zorder=4,
            clip_on=False,
        )
