"""The table of timings as cells of text, for every form of output. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tracking.compare.comparison import Comparison
from tracking.compare.timings import Line, drafted
from tracking.compare.words import ratio

SAME, MISSING = "not told apart", "–"
_MARKDOWN = {"whole": "**", "half": "*", "": ""}


@dataclass(frozen=True)
class Entry:
    """One line. `cells` are median and range by column, `verdicts` the words against plain
    decoding, empty where there is none; `ahead` says where speculation gains most. `flips` is
    "whole" from faster to slower, "half" from faster to not told apart, else empty."""

    name: str
    cells: tuple[str, ...]
    verdicts: tuple[str, ...]
    ahead: str
    flips: str


def entries(comparison: Comparison) -> list[Entry]:
    """Lines whose verdict flips first, then the others in their own order."""
    flipping = {flip.line.name: "whole" if flip.whole else "half" for flip in comparison.flips}
    order = ["whole", "half", ""]
    ordered = sorted(comparison.lines, key=lambda line: order.index(flipping.get(line.name, "")))
    labels = [column.label for column in comparison.columns]
    return [_entry(line, labels, flipping.get(line.name, "")) for line in ordered]


def _entry(line: Line, labels: Sequence[str], flips: str) -> Entry:
    return Entry(
        name=line.name,
        cells=tuple(MISSING if row is None else ratio(row) for row in line.cells),
        verdicts=tuple((row.verdict or "") if row else "" for row in line.cells),
        ahead=_ahead(line, labels),
        flips=flips,
    )


def _ahead(line: Line, labels: Sequence[str]) -> str:
    if not line.ahead:
        return ""
    return ", ".join(labels[place] for place in line.ahead) if line.told_apart else SAME


def as_markdown(comparison: Comparison) -> str:
    """For MLflow's page; a range's hyphen is one at which no line is broken."""
    labels = [column.label for column in comparison.columns]
    head = ["", *labels, "gains most on"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for entry in entries(comparison):
        cells = (cell.replace("-", "\N{NON-BREAKING HYPHEN}") for cell in entry.cells)
        words = [f"{c} {v}".strip() for c, v in zip(cells, entry.verdicts, strict=True)]
        mark = _MARKDOWN[entry.flips]
        name = f"{mark}{entry.name}{mark}"
        lines.append("| " + " | ".join([name, *words, entry.ahead]) + " |")
    return "\n".join(lines)


def tidy(comparison: Comparison) -> list[dict[str, Any]]:
    """One row a draft, k and column, unrounded: for a CSV file and for data frames."""
    names = (
        "acceptance tokens_per_pass c v o predicted_simple predicted measured low high pairs "
        "verdict null_low null_high"
    ).split()
    found = []
    for line in comparison.lines:
        for column, row in zip(comparison.columns, line.cells, strict=True):
            if row is None:
                continue
            about: dict[str, Any] = {
                "draft": row.draft,
                "k": row.length if row.auto else row.k,
                **row.split,
            }
            about |= {"column": column.label, "draft_length": drafted(row)}
            about |= {"machine": column.told.get("machine.name", ""), "load": column.load}
            about["sweep"] = column.sweep.id
            found.append(about | {name: getattr(row, name) for name in names})
    return found
