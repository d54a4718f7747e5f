"""A sweep against the published table it repeats: do its orderings and its conclusion hold here?

The table: on one laptop, int8, int4 and bigram drafts of one small character model; the draft with
the lowest acceptance was the only one that ran faster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tracking.rows import Row

BEST_TO_WORST = ("int8", "int4", "bigram")


@dataclass(frozen=True, slots=True)
class Finding:
    """`holds` is None where the sweep cannot tell; `detail` names what differs."""

    claim: str
    holds: bool | None
    detail: str = ""


def findings(rows: Sequence[Row]) -> list[Finding]:
    """The three orderings and the conclusion, each held against the sweep's rows."""
    drafting = [row for row in rows if row.k > 0]
    return [
        _finding(f"better drafts are accepted more{_present(drafting)}", _by_draft(drafting)),
        _finding(
            "acceptance falls as k rises",
            _by_k(drafting, "acceptance", lambda row: row.acceptance, falls=True),
        ),
        _finding(
            "tokens per pass rise with k",
            _by_k(drafting, "tokens per pass", lambda row: row.tokens_per_pass, falls=False),
        ),
        _paradox(drafting),
    ]


def sentence(found: Sequence[Finding]) -> str:
    """What holds and what differs; empty where the sweep can tell nothing."""
    parts = []
    holding = [finding.claim for finding in found if finding.holds]
    differing = [finding for finding in found if finding.holds is False]
    if holding:
        parts.append(f"As in the reference: {'; '.join(holding)}.")
    if differing:
        told = "; ".join(f"{finding.claim} ({finding.detail})" for finding in differing)
        parts.append(f"Unlike the reference, it does not hold here that {told}.")
    return " ".join(parts)


def _finding(claim: str, comparisons: Iterator[str]) -> Finding:
    """Each comparison gives what contradicts the claim, or an empty string."""
    told = list(comparisons)
    against = [detail for detail in told if detail]
    return Finding(claim, not against if told else None, ", ".join(against))


def _present(rows: Sequence[Row]) -> str:
    drafts = {row.draft for row in rows}
    names = [draft for draft in BEST_TO_WORST if draft in drafts]
    return f" ({' > '.join(names)})" if len(names) > 1 else ""


def _by_draft(rows: Sequence[Row]) -> Iterator[str]:
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        if row.draft in BEST_TO_WORST and row.acceptance is not None:
            groups.setdefault((row.k, *row.split.items()), []).append(row)
    for group in groups.values():
        group.sort(key=lambda row: BEST_TO_WORST.index(row.draft))
        for better, worse in pairwise(group):
            yield _above(better, worse, better.acceptance, worse.acceptance, "acceptance")


def _by_k(
    rows: Sequence[Row], what: str, value: Callable[[Row], float | None], falls: bool
) -> Iterator[str]:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        if value(row) is not None:
            groups.setdefault(row.series, []).append(row)
    for group in groups.values():
        for small, large in pairwise(sorted(group, key=lambda row: row.k)):
            high, low = (small, large) if falls else (large, small)
            yield _above(high, low, value(high), value(low), what)


def _above(high: Row, low: Row, above: float | None, below: float | None, what: str) -> str:
    if above is None or below is None or above > below:
        return ""
    return f"{what} {above:.3g} of {high.name} is not above {below:.3g} of {low.name}"


def _paradox(rows: Sequence[Row]) -> Finding:
    """The draft that saves the most passes loses, one that is accepted less wins."""
    claim = "the draft that saves the most passes is slower, one that is accepted less is faster"
    timed = [row for row in rows if row.measured is not None and row.acceptance is not None]
    if len({row.series for row in timed}) < 2:
        return Finding(claim, None)
    saver = max(timed, key=lambda row: row.tokens_per_pass or 0.0)
    best = max(timed, key=lambda row: row.measured or 0.0)
    holds = (
        saver.verdict == "slower"
        and best.verdict == "faster"
        and (best.acceptance or 0.0) < (saver.acceptance or 0.0)
    )
    told = f"{saver.name} is {_in_words(saver)}"
    if best is not saver:
        told += f", {best.name} is {_in_words(best)}"
    return Finding(claim, holds, "" if holds else told)


def _in_words(row: Row) -> str:
    if row.verdict in ("faster", "slower"):
        return row.verdict
    return "not told apart from plain decoding"
