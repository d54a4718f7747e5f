"""How far the predictions are from what was measured, and which term makes the difference. Pure.

In target passes a round: the simple formula says 1 + k·c, the full one v + k·c + o, the measured
speedup that a round costs tokens per pass / speedup. So the simple one leaves out v − 1 for
verification and o for the loop; what the full one leaves out is unexplained.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from tracking.rows import Row

NEAR = 0.05


@dataclass(frozen=True, slots=True)
class Gap:
    """Errors are predicted / measured − 1; the three parts are in target passes a round."""

    simple: float
    full: float
    verification: float
    loop: float
    unexplained: float

    @property
    def term(self) -> str:
        """What makes up most of the difference between the simple formula and the measured."""
        parts = {
            "verification": self.verification,
            "the loop": self.loop,
            "unexplained": self.unexplained,
        }
        return max(parts, key=lambda name: abs(parts[name]))


def gap(row: Row) -> Gap | None:
    """None where the row was not timed or has no costs."""
    if row.predicted is None or row.predicted_simple is None or not row.measured:
        return None
    if row.v is None or row.o is None or not row.tokens_per_pass:
        return None
    return Gap(
        simple=row.predicted_simple / row.measured - 1,
        full=row.predicted / row.measured - 1,
        verification=row.v - 1,
        loop=row.o,
        unexplained=row.tokens_per_pass / row.measured - row.tokens_per_pass / row.predicted,
    )


def sentence(rows: Sequence[Row]) -> str:
    """How good the predictions are, and what the simple one lacks; empty where nothing is timed."""
    known = [(row, found) for row in rows if (found := gap(row)) is not None]
    if not known:
        return ""
    near = sum(abs(found.full) <= NEAR for _, found in known)
    row, worst = max(known, key=lambda pair: abs(pair[1].full))
    simple = statistics.median(abs(found.simple) for _, found in known)
    told = (
        f"The full prediction is within {NEAR:.0%} of the measured median in {near} of "
        f"{len(known)} rows (farthest: {row.name}, {worst.full:+.0%}); the simple one is off by "
        f"{simple:.0%} (median). What it lacks most is {_terms(known)}."
    )
    return told + _missing([pair for pair in known if abs(pair[1].full) > NEAR])


def _terms(known: Sequence[tuple[Row, Gap]]) -> str:
    """The terms by how many rows they are the largest of; the rows of all but the first named."""
    rows: dict[str, list[str]] = {}
    for row, found in known:
        term = "something in neither formula" if found.term == "unexplained" else found.term
        rows.setdefault(term, []).append(row.name)
    first, *others = sorted(rows.items(), key=lambda item: -len(item[1]))
    told = f"{first[0]} (in {len(first[1])})"
    return told + "".join(f", {term} (in {len(names)})" for term, names in others)


def _missing(far: Sequence[tuple[Row, Gap]]) -> str:
    """Which way the full prediction errs, where it does by more than `NEAR`."""
    if not far:
        return ""
    ways = {
        "predicted too fast": [row.name for row, found in far if found.full > 0],
        "predicted too slow": [row.name for row, found in far if found.full < 0],
    }
    told = "; ".join(f"{way}: {_some(names)}" for way, names in ways.items() if names)
    why = "There a round is not the sum of its parts timed alone: caches, load."
    return f" Farther off is {told}. {why}"


def _some(names: Sequence[str], most: int = 3) -> str:
    if len(names) <= most:
        return ", ".join(names)
    return f"{', '.join(names[:most])} and {len(names) - most} more"
