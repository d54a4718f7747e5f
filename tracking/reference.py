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
TABLE = "the published table (bigram, int8, int4 on one laptop)"


@dataclass(frozen=True, slots=True)
class Finding:
    """`holds` is None where the sweep cannot tell.

    `denial` is what to say where the claim does not hold, `detail` the figures behind it.
    """

    claim: str
    holds: bool | None
    detail: str = ""
    denial: str = ""


def findings(rows: Sequence[Row]) -> list[Finding]:
    """The three orderings and the conclusion, each held against the sweep's rows."""
    known = [row for row in rows if row.draft in BEST_TO_WORST]  # others speak neither way
    drafting = [row for row in known if row.k > 0 and not row.auto]
    return [
        _finding(
            f"better drafts are accepted more{_present(drafting)}",
            "better drafts are not always accepted more",
            _by_draft(drafting),
        ),
        _finding(
            "acceptance falls as k rises",
            "acceptance does not always fall as k rises",
            _by_k(drafting, "acceptance", lambda row: row.acceptance, falls=True),
        ),
        _finding(
            "tokens per pass rise with k",
            "tokens per pass do not always rise with k",
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
        parts.append(f"As in {TABLE}: {'; '.join(holding)}.")
    if differing:
        told = "; ".join(_denied(finding) for finding in differing)
        parts.append(f"Unlike {'there' if holding else f'in {TABLE}'}: {told}.")
    return " ".join(parts)


def _denied(finding: Finding) -> str:
    return f"{finding.denial} ({finding.detail})" if finding.detail else finding.denial


def _finding(claim: str, denial: str, comparisons: Iterator[str | None]) -> Finding:
    """Each comparison gives what contradicts the claim, an empty string, or None for a tie.

    A tie, as at acceptance 1 or of greedy texts, speaks neither for the claim nor against it.
    """
    told = [detail for detail in comparisons if detail is not None]
    against = [detail for detail in told if detail]
    return Finding(claim, not against if told else None, ", ".join(against), denial)


def _present(rows: Sequence[Row]) -> str:
    drafts = {row.draft for row in rows}
    names = [draft for draft in BEST_TO_WORST if draft in drafts]
    return f" ({' > '.join(names)})" if len(names) > 1 else ""


def _by_draft(rows: Sequence[Row]) -> Iterator[str | None]:
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        if row.acceptance is not None:
            groups.setdefault((row.k, *row.split.items()), []).append(row)
    for group in groups.values():
        group.sort(key=lambda row: BEST_TO_WORST.index(row.draft))
        for better, worse in pairwise(group):
            yield _above(better, worse, better.acceptance, worse.acceptance, "acceptance")


def _by_k(
    rows: Sequence[Row], what: str, value: Callable[[Row], float | None], falls: bool
) -> Iterator[str | None]:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        if value(row) is not None:
            groups.setdefault(row.series, []).append(row)
    for group in groups.values():
        for small, large in pairwise(sorted(group, key=lambda row: row.k)):
            high, low = (small, large) if falls else (large, small)
            yield _above(high, low, value(high), value(low), what)


def _above(high: Row, low: Row, above: float | None, below: float | None, what: str) -> str | None:
    if above is None or below is None or above == below:
        return None
    if above > below:
        return ""
    return f"{what} {above:.3g} of {high.name} is not above {below:.3g} of {low.name}"


def _paradox(rows: Sequence[Row]) -> Finding:
    """The draft that saves the most passes loses, another that is accepted less wins.

    Needs the table's bigram and one more of its drafts: two rules of one draft do not tell.
    """
    claim = "the draft that saves the most passes is slower, one that is accepted less is faster"
    timed = [row for row in rows if row.measured is not None and row.acceptance is not None]
    drafts = {row.draft for row in timed}
    if "bigram" not in drafts or len(drafts) < 2:
        return Finding(claim, None)
    saver = max(timed, key=lambda row: row.tokens_per_pass or 0.0)
    told = f"{saver.name}, which saves the most passes, is"
    if saver.verdict != "slower":
        return Finding(claim, False, "", f"{told} {_in_words(saver)} here")
    less = [row for row in timed if row.draft != saver.draft and _accepts(row) < _accepts(saver)]
    if not less:
        return Finding(claim, False, "", f"{told} slower here, but no draft is accepted less")
    best = max(less, key=lambda row: (row.verdict == "faster", row.measured or 0.0))
    if best.verdict == "faster":
        return Finding(claim, True)
    denial = f"{told} slower here, but no draft that is accepted less is clearly faster"
    return Finding(claim, False, f"{best.name}: {_in_words(best)}", denial)


def _accepts(row: Row) -> float:
    return row.acceptance or 0.0


def _in_words(row: Row) -> str:
    if row.verdict in ("faster", "slower"):
        return row.verdict
    return "not told apart from plain decoding"
