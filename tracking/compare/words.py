"""The comparison in sentences, each computed from it. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from tracking.compare.comparison import Comparison
from tracking.compare.count_words import count_sentences
from tracking.compare.machines import Range
from tracking.compare.ranks import Rank, firsts_apart
from tracking.compare.settings import argument, settings_apart
from tracking.compare.timings import Flip, disjoint
from tracking.load import BOUNDS
from tracking.rows import Row

FIRST = ("Which sweeps", "Counts", "What flips")
"""Headings of the sections that stand above the table."""
SPEEDUP = "Speedup over plain decoding: median (range)"
_MOST = 6  # flips that are told one by one


def ratio(row: Row) -> str:
    """ "1.30 (1.19-1.47)"."""
    if row.measured is None or row.low is None or row.high is None:
        return "not timed"
    return f"{row.measured:.2f} ({row.low:.2f}-{row.high:.2f})"


def flip_sentences(comparison: Comparison) -> list[str]:
    """Verdicts that are not the same in two columns, with the reason; else that there are none."""
    if len(comparison.columns) < 2:
        return []
    shared = [line for line in comparison.lines if sum(c is not None for c in line.cells) > 1]
    if not shared:
        return [_none_shared(comparison)]
    told = [_flip(comparison, flip) for flip in comparison.flips[:_MOST]]
    if len(comparison.flips) > _MOST:
        told.append(f"And {len(comparison.flips) - _MOST} more, marked in the table.")
    if not told:
        told.append("No verdict flips: what pays in one column is not clearly slower in another.")
    return told


def _none_shared(comparison: Comparison) -> str:
    told = "No draft and k was timed in two columns, so that no timing stands beside another"
    columns = comparison.columns
    reasons = []
    for name, values in settings_apart([column.records for column in columns]).items():
        each = (f"{v} on {c.label}" for v, c in zip(values, columns, strict=True))
        reasons.append(f"{argument(name)} is {', '.join(each)}")
    if any("target" in row.split for line in comparison.lines for row in line.cells if row):
        reasons.append("the weights differ")
    return f"{told}: {'; '.join(reasons)}. Run each with the same." if reasons else f"{told}."


def _flip(comparison: Comparison, flip: Flip) -> str:
    labels = [column.label for column in comparison.columns]
    one, other = labels[flip.pays], labels[flip.loses]
    won, lost = flip.line.cells[flip.pays], flip.line.cells[flip.loses]
    assert won is not None and lost is not None  # they are what made the flip
    word = "and not on" if flip.whole else "and is not told apart from plain decoding on"
    told = f"{flip.line.name} pays on {one}, {ratio(won)}, {word} {other}, {ratio(lost)}"
    if won.predicted is None or lost.predicted is None:
        return f"{told}; the costs were not measured on both."
    if not flip.explained or not flip.costs:
        predicted = f"{won.predicted:.2f} on {one}, {lost.predicted:.2f} on {other}"
        each = ((won.predicted, won.measured), (lost.predicted, lost.measured))
        off = max(abs(said / (measured or 1.0) - 1) for said, measured in each)
        return (
            f"{told}; the measured costs do not explain it: they predict {predicted}, "
            f"and are off by up to {off:.0%}."
        )
    costs = [f"{term} is {_cost(a)} on {one}, {_cost(b)} on {other}" for term, a, b in flip.costs]
    return f"{told}, because {' and '.join(costs)}."


def _cost(value: float) -> str:
    return f"{value:.2g}" if value < 0.1 else f"{value:.2f}"


def rank_sentences(comparison: Comparison) -> list[str]:
    """For each column the drafts by speed, and whom acceptance would have put before whom."""
    found = comparison.ranks
    told = []
    for rank in found:
        label = comparison.columns[rank.column].label
        told.append(f"{label}: by speed {_by_speed(rank)}; by acceptance {_by_acceptance(rank)}.")
        told += [f"{label}: {sentence}" for sentence in _inversions(rank)]
    if apart := firsts_apart(found):
        each = [f"{r.by_speed[0].name} on {comparison.columns[r.column].label}" for r in apart]
        told.append(f"The fastest draft is not the same: {', '.join(each)}.")
    return told


def _by_speed(rank: Rank) -> str:
    told, before = "", None
    for row in rank.by_speed:
        link = "" if before is None else (" > " if disjoint(before, row) else " ~ ")
        told, before = f"{told}{link}{row.name} {row.measured or 0.0:.2f}", row
    return told


def _by_acceptance(rank: Rank) -> str:
    names = [f"{row.series} {row.acceptance or 0.0:.2f}" for row in rank.by_acceptance]
    at = "" if rank.accepted_at is None else f" (at k={rank.accepted_at})"
    return " > ".join(names) + at


def _inversions(rank: Rank) -> Iterator[str]:
    by_fast: dict[str, tuple[Row, list[Row]]] = {}
    for slow, fast in rank.inversions:
        by_fast.setdefault(fast.name, (fast, []))[1].append(slow)
    for fast, slower in by_fast.values():
        names = " and ".join(row.series for row in slower)
        verb = "is" if len(slower) == 1 else "are"
        yield f"{names} {verb} accepted more than {fast.series}, and clearly slower."


def speed_sentences(comparison: Comparison) -> list[str]:
    """Which machine is faster at plain decoding, which speculation has nothing to do with."""
    known = [(f.label, f.tokens_per_s) for f in comparison.facts if f.tokens_per_s is not None]
    if len(known) < 2:
        return []
    known.sort(key=lambda fact: -fact[1].median)
    (first, best), *others = known
    each = "; ".join(f"{label} {_speed(speed)}" for label, speed in known)
    level = [label for label, speed in others if speed.high >= best.low]
    verdict = f"not told apart: {', '.join([first, *level])}" if level else f"{first} is faster"
    return [f"Plain decoding in tokens/s: {each}: {verdict}."]


def _speed(speed: Range) -> str:
    return f"{speed.median:,.0f} ({speed.low:,.0f}-{speed.high:,.0f})"


def footnotes(comparison: Comparison, whole: str, half: str) -> list[str]:
    """What stands under the table. `whole` and `half` are the marks of lines that flip."""
    if not comparison.columns:
        return []
    told = "The range is from the smallest to the largest ratio of a pair"
    if comparison.intervals:
        told += "; from 7 pairs on it is the interval for the median, which is narrower"
    notes = [f"{told}."]
    flips = {flip.whole for flip in comparison.flips}
    if True in flips:
        notes.append(f"{whole}: faster than plain decoding in one column, slower in another.")
    if False in flips:
        notes.append(f"{half}: faster in one column, not told apart in another.")
    if any(column.load for column in comparison.columns):
        notes.append(f"Load of the machine: {BOUNDS}.")
    return notes


def sections(comparison: Comparison) -> list[tuple[str, list[str]]]:
    """Headings and sentences, in the order in which they are read; no empty section."""
    found = [
        ("Which sweeps", list(comparison.notes)),
        ("Counts", count_sentences(comparison.sweeps, comparison.counts)),
        ("What flips", flip_sentences(comparison)),
        ("Order of the drafts, each at its best k", rank_sentences(comparison)),
        ("The machines themselves", speed_sentences(comparison)),
    ]
    return [(heading, told) for heading, told in found if told]
