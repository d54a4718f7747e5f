"""The comparison as plain data, for JSON. Pure."""

from __future__ import annotations

import dataclasses
from typing import Any

from tracking.compare.comparison import Comparison
from tracking.compare.counts import Counts
from tracking.compare.table import tidy
from tracking.compare.words import sections

SCHEMA = 1


def as_data(comparison: Comparison) -> dict[str, Any]:
    """{"schema", "sweeps", "columns", "untimed", "counts", "timings", "ahead", "flips", "ranks",
    "sentences"}. "untimed" are sweeps without a column.

    Values are unrounded; what is not known is null.
    """
    labels = [column.label for column in comparison.columns]
    return {
        "schema": SCHEMA,
        "sweeps": [
            {"id": s.id, "label": s.label, "tags": dict(s.tags), "jobs": len(s.records)}
            for s in comparison.sweeps
        ],
        "columns": [dataclasses.asdict(fact) for fact in comparison.facts],
        "untimed": [dataclasses.asdict(fact) for fact in comparison.untimed],
        "counts": _counts(comparison.counts),
        "timings": tidy(comparison),
        "ahead": {
            line.name: [labels[place] for place in line.ahead] if line.told_apart else []
            for line in comparison.lines
        },
        "flips": [
            {"name": flip.line.name, "pays": labels[flip.pays], "loses": labels[flip.loses]}
            | {"whole": flip.whole, "explained": flip.explained}
            | {"costs": {term: [won, lost] for term, won, lost in flip.costs}}
            for flip in comparison.flips
        ],
        "ranks": [
            {"column": labels[rank.column], "accepted_at": _length(rank.accepted_at)}
            | {"by_speed": [row.name for row in rank.by_speed]}
            | {"by_acceptance": [row.series for row in rank.by_acceptance]}
            | {"inversions": [[a.series, b.series] for a, b in rank.inversions]}
            for rank in comparison.ranks
        ],
        "sentences": dict(sections(comparison)),
    }


def _length(k: str | None) -> int | str | None:
    """k as a number, or "auto"."""
    return int(k) if k is not None and k.isdecimal() else k


def _counts(counts: Counts) -> dict[str, Any]:
    return {
        "matched": len(counts.matches),
        "agreeing": counts.agreeing,
        "same_jobs": counts.same_jobs,
        "disagreements": [dataclasses.asdict(found) for found in counts.disagreements],
        "apart": [dataclasses.asdict(found) for found in counts.apart],
        "alone": {
            label: [record.name for record in records] for label, records in counts.alone.items()
        },
    }
