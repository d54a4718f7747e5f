"""The comparison as one HTML file that needs nothing else: no script, no font, no address."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tracking.compare.comparison import Comparison
from tracking.compare.figures import figures
from tracking.compare.machines import HEADINGS
from tracking.compare.table import entries
from tracking.compare.words import FIRST, SPEEDUP, footnotes, sections
from tracking.page import address, render

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SHARP_DPI = 160
_CAPTIONS = {
    "ranges": "Each bar is the range of the table, the mark is the median. Bars that do not "
    "overlap are told apart.",
    "costs": "c is the time of a drafted token, v that of a verify pass over k + 1 positions, each "
    "over the time of a target pass. A draft with c near 1 cannot pay.",
    "breakeven": "A panel for each k. The line is where nothing is gained: the more a drafted "
    "token costs, the more must be accepted. Acceptance is the constant one that gives the yield "
    "which was counted; the cost is c + (v - 1 + o) / k. With k=auto, k is what a round drafts on "
    "average, in the panel counted to the draft that drafts most. A mark on which others lie is "
    "drawn larger.",
}


def as_html(comparison: Comparison, drawn: Mapping[str, bytes]) -> str:
    """The whole page; `drawn` maps a figure's name to its PNG."""
    told = sections(comparison)
    facts = [*comparison.facts, *comparison.untimed]
    return render(
        "compare.html",
        title=comparison.name,
        facts=facts,
        headings=[name for name in HEADINGS if any(name in fact.about for fact in facts)],
        labels=[column.label for column in comparison.columns],
        first=[part for part in told if part[0] in FIRST],
        rest=[part for part in told if part[0] not in FIRST],
        speedup=SPEEDUP,
        entries=entries(comparison),
        footnotes=footnotes(comparison, "Dark lines flip (**)", "Light lines flip by half (*)"),
        figures=[
            {"name": name, "caption": _CAPTIONS[name], "address": address(png)}
            for name, png in drawn.items()
        ],
    )


def draw(comparison: Comparison) -> dict[str, bytes]:
    """Every figure as a PNG, sharp enough for a page that is printed or enlarged."""
    return {name: _png(figure) for name, figure in figures(comparison).items()}


def _png(figure: Figure) -> bytes:
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=_SHARP_DPI)
    return out.getvalue()
