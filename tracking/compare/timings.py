"""The timings of each draft and k, column by column: ranges, who gains more, what flips. Pure.

Columns are never pooled: a cell is made of the jobs of one sweep, machine and state of load.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pipeline.records import JobRecord
from tracking.compare.settings import HOW_OFTEN
from tracking.compare.sweeps import Column
from tracking.rows import Row, rows

_TERMS = ("c", "v", "o")
_SHARE = 2 / 3  # of the difference in cost that the named terms have to make up


@dataclass(frozen=True)
class Line:
    """One draft and k. `cells` has a row for each column, None where the column lacks it."""

    name: str
    series: str
    cells: tuple[Row | None, ...]

    @property
    def ahead(self) -> tuple[int, ...]:
        """The columns where speculation gains most: one, or those that overlap with the best.

        Empty with fewer than two timed cells.
        """
        timed = [(place, row) for place, row in enumerate(self.cells) if row is not None]
        if len(timed) < 2:
            return ()
        best = max((row for _, row in timed), key=lambda row: row.measured or 0.0)
        return tuple(place for place, row in timed if not disjoint(best, row))

    @property
    def told_apart(self) -> bool:
        """Whether some column is clearly behind the best."""
        return 0 < len(self.ahead) < sum(row is not None for row in self.cells)


@dataclass(frozen=True)
class Flip:
    """A verdict that is not the same in two columns.

    `whole` is a flip from faster to slower; else one of the two is not told apart from plain
    decoding. `costs` holds the terms that make the difference, the largest first, each with its
    value in both columns; `explained` says whether the costs predict both verdicts, and by more
    than predictions are off here.
    """

    line: Line
    pays: int
    loses: int
    whole: bool
    costs: tuple[tuple[str, float, float], ...]
    explained: bool


def lines(columns: Sequence[Column]) -> list[Line]:
    """In the order in which drafts first occur, then by k.

    Columns that took ratios more or less often meet in a line, as long as no column of its own did
    both: nothing is pooled across them, and what is measured is the same.
    """
    once = _told_once(columns)
    alike = [[_without(record, once) for record in column.records] for column in columns]
    every = [record for records in alike for record in records]
    tables = [{row.name: row for row in rows(records, every)} for records in alike]
    found = []
    for row in rows(every):
        cells = tuple(table.get(row.name) for table in tables)
        found.append(Line(row.name, row.series, cells))
    return found


def _told_once(columns: Sequence[Column]) -> set[str]:
    """How often ratios were taken, where that is one value in every column."""
    return {
        name
        for name in HOW_OFTEN
        if all(len({str(r.params.get(name)) for r in c.records}) == 1 for c in columns)
    }


def _without(record: JobRecord, names: set[str]) -> JobRecord:
    kept = {name: value for name, value in record.params.items() if name not in names}
    return replace(record, params=kept)


def drafted(row: Row) -> float:
    """Tokens drafted in a round: k, or on average where the draft's own sureness decides."""
    return float(row.k) if row.draft_length is None else row.draft_length


def disjoint(one: Row, other: Row) -> bool:
    """Whether two rows' ranges do not meet. Rows that were not timed meet everything."""
    if one.low is None or one.high is None or other.low is None or other.high is None:
        return False
    return one.low > other.high or other.low > one.high


def flips(lines: Sequence[Line]) -> list[Flip]:
    """Whole flips first, then the half ones; of each kind, the furthest apart first."""
    found = [flip for line in lines if (flip := _flip(line)) is not None]
    return sorted(found, key=lambda flip: (not flip.whole, -_distance(flip)))


def _flip(line: Line) -> Flip | None:
    timed = [(place, row) for place, row in enumerate(line.cells) if row is not None]
    faster = [(place, row) for place, row in timed if row.verdict == "faster"]
    others = [(place, row) for place, row in timed if row.verdict in ("slower", "ambiguous")]
    if not faster or not others:
        return None
    pays, won = max(faster, key=lambda cell: cell[1].measured or 0.0)
    slower = [cell for cell in others if cell[1].verdict == "slower"] or others
    loses, lost = min(slower, key=lambda cell: cell[1].measured or 0.0)
    whole = lost.verdict == "slower"
    return Flip(line, pays, loses, whole, _costs(won, lost), _explained(won, lost, whole))


def _explained(won: Row, lost: Row, whole: bool) -> bool:
    """Of a whole flip the predictions must be on both sides of 1; of any, further apart than either
    is from what was measured."""
    told = (won.predicted, lost.predicted, won.measured, lost.measured)
    logs = [math.log(value) for value in told if value is not None and value > 0]
    if len(logs) < len(told):
        return False
    pays, loses, paid, lost_by = logs
    off = max(abs(pays - paid), abs(loses - lost_by))
    return pays - loses > off and pays > 0 and (loses <= 0 or not whole)


def _distance(flip: Flip) -> float:
    won, lost = flip.line.cells[flip.pays], flip.line.cells[flip.loses]
    assert won is not None and lost is not None  # they are what made the flip
    return (won.measured or 0.0) / (lost.measured or 1.0)


def _costs(won: Row, lost: Row) -> tuple[tuple[str, float, float], ...]:
    """The terms that make a round dearer where it loses: k c, v and o, in target passes."""
    weights = {"c": drafted(won), "v": 1, "o": 1}
    values = {term: (getattr(won, term), getattr(lost, term)) for term in _TERMS}
    known = {t: pair for t, pair in values.items() if pair[0] is not None and pair[1] is not None}
    dearer = {term: weights[term] * (lost - won) for term, (won, lost) in known.items()}
    dearer = {term: much for term, much in dearer.items() if much > 0}
    named: list[str] = []
    for term in sorted(dearer, key=lambda term: -dearer[term]):
        if sum(dearer[name] for name in named) < _SHARE * sum(dearer.values()):
            named.append(term)
    return tuple((term, *known[term]) for term in named)
