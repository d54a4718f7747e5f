"""The drafts of each column in order of speed, and where the order by acceptance differs. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from tracking.compare.timings import Line, disjoint
from tracking.rows import Row


@dataclass(frozen=True)
class Rank:
    """One column. `by_speed` holds each draft at its best k; `by_acceptance` each at one common k,
    `accepted_at` as it was asked for, or at its own smallest where they have none in common."""

    column: int
    by_speed: tuple[Row, ...]
    by_acceptance: tuple[Row, ...]
    accepted_at: str | None

    @property
    def inversions(self) -> list[tuple[Row, Row]]:
        """(accepted more, faster): pairs of drafts whose speeds clearly are the other way round."""
        accepted = {row.series: row.acceptance or 0.0 for row in self.by_acceptance}
        return [
            (slow, fast)
            for fast, slow in combinations(self.by_speed, 2)
            if disjoint(fast, slow) and accepted.get(slow.series, 0) > accepted.get(fast.series, 0)
        ]


def firsts_apart(found: Sequence[Rank]) -> list[Rank]:
    """The columns whose fastest draft is not another column's: in both of the two, each draft is
    clearly faster than the other where it is first. Options count, other settings do not."""
    apart: set[int] = set()
    for one, other in combinations(found, 2):
        if _first_elsewhere(one, other) and _first_elsewhere(other, one):
            apart |= {one.column, other.column}
    return [rank for rank in found if rank.column in apart]


def _first_elsewhere(here: Rank, there: Rank) -> bool:
    """Whether the draft that is first `there` is clearly behind another one `here`."""
    first, rival = here.by_speed[0], _draft(there.by_speed[0])
    slower = next((row for row in here.by_speed if _draft(row) == rival), first)
    return _draft(slower) != _draft(first) and disjoint(first, slower)


def _draft(row: Row) -> tuple[str, ...]:
    """With its options; the same draft of other weights, or timed otherwise, is the same."""
    options = (f"{key}={value}" for key, value in row.split.items() if key.startswith("draft."))
    return (row.draft, *options)


def ranks(lines: Sequence[Line], columns: int) -> list[Rank]:
    """One for each column in which more than one draft was timed."""
    found = []
    for column in range(columns):
        drafts: dict[str, list[Row]] = {}
        for line in lines:
            row = line.cells[column]
            if row is not None and row.k > 0 and row.measured is not None:
                drafts.setdefault(line.series, []).append(row)
        if len(drafts) > 1:
            found.append(_rank(column, drafts))
    return found


def _rank(column: int, drafts: dict[str, list[Row]]) -> Rank:
    best = [max(rows, key=lambda row: row.measured or 0.0) for rows in drafts.values()]
    lengths = {row.length: _place(row) for rows in drafts.values() for row in rows}
    common = set.intersection(*({row.length for row in rows} for rows in drafts.values()))
    at = min(common, default=None, key=lambda length: lengths[length])
    accepted = [
        min(rows, key=lambda row: (row.length != at, *_place(row))) for rows in drafts.values()
    ]
    return Rank(
        column,
        tuple(sorted(best, key=lambda row: -(row.measured or 0.0))),
        tuple(sorted(accepted, key=lambda row: -(row.acceptance or 0.0))),
        at,
    )


def _place(row: Row) -> tuple[bool, int]:
    """auto comes last."""
    return row.auto, row.k
