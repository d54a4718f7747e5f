"""Records in, comparison out. Pure: reads nothing, writes nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from tracking.compare.counts import Counts, Fetch, compare_counts
from tracking.compare.machines import Facts, facts, untimed
from tracking.compare.ranks import Rank, ranks
from tracking.compare.settings import settings_apart
from tracking.compare.sweeps import Column, Sweep, columns, labelled
from tracking.compare.timings import Flip, Line, flips, lines

_LONGEST_NAME = 80
_BRING = (
    "bring another machine's results with `make import FILE=...`, run `make sweep` again under "
    "another load, or name two sweeps with --sweep ID --sweep ID"
)
NO_SWEEP = "there is no sweep yet: run `make sweep`, on two machines"
ONLY_ONE = (
    "bring another machine's results with `make import FILE=...`, or run `make sweep` again, for "
    "instance under another load"
)
"""What to do where the store has one sweep."""


class NothingToCompare(ValueError):
    """Says in a sentence what is missing, and what to do."""


@dataclass(frozen=True)
class Comparison:
    """`notes` say how the sweeps were chosen, where that is worth saying."""

    sweeps: Sequence[Sweep]
    counts: Counts
    notes: Sequence[str] = ()

    @cached_property
    def columns(self) -> list[Column]:
        return columns(self.sweeps)

    @cached_property
    def lines(self) -> list[Line]:
        return lines(self.columns)

    @property
    def intervals(self) -> bool:
        """Whether some range is the interval for the median, narrower than from end to end."""
        metrics = [record.metrics for column in self.columns for record in column.records]
        ends = (("time/speedup_low", "time/speedup_min"), ("time/speedup_high", "time/speedup_max"))
        return any(m[a] != m.get(b) for m in metrics for a, b in ends if a in m)

    @cached_property
    def flips(self) -> list[Flip]:
        return flips(self.lines)

    @property
    def ranks(self) -> list[Rank]:
        return ranks(self.lines, len(self.columns))

    @property
    def facts(self) -> list[Facts]:
        """Of each column."""
        return [facts(column) for column in self.columns]

    @property
    def untimed(self) -> list[Facts]:
        """Of the sweeps that have no column."""
        timed = {column.sweep.id for column in self.columns}
        return [untimed(sweep) for sweep in self.sweeps if sweep.id not in timed]

    @property
    def name(self) -> str:
        """What it is called where runs are listed."""
        labels = [fact.label for fact in (*self.facts, *self.untimed)]
        told = "compare " + " | ".join(labels)
        return told if len(told) <= _LONGEST_NAME else told[: _LONGEST_NAME - 1] + "…"

    @property
    def digest(self) -> str:
        """The same for the same jobs of the same sweeps."""
        told = [f"{s.id} {r.digest} {r.finished_s}" for s in self.sweeps for r in s.records]
        return hashlib.sha256("\n".join(sorted(told)).encode()).hexdigest()


def compare(
    sweeps: Iterable[Sweep],
    fetch: Fetch,
    notes: Sequence[str] = (),
    asked: str = "",
    more: str = "",
) -> Comparison:
    """NothingToCompare for fewer than two sides, or sweeps without a job in common.

    One sweep is enough where it was timed under two states of load. `fetch` gives a job's whole
    record, see `Fetch`; the others are as in `choose.Choice`.
    """
    sweeps = labelled(sweeps)
    if len(sweeps) < 2 and len(columns(sweeps)) < 2:
        raise NothingToCompare(_lonely(sweeps, notes, asked, more))
    found = Comparison(sweeps, compare_counts(sweeps, fetch), notes)
    shared = any(sum(cell is not None for cell in line.cells) > 1 for line in found.lines)
    if not found.counts.matches and not shared:
        raise NothingToCompare(_strangers(sweeps))
    return found


def _lonely(sweeps: Sequence[Sweep], notes: Sequence[str], asked: str, more: str) -> str:
    there = f"only {sweeps[0].label} ({sweeps[0].id})" if sweeps else "no sweep"
    left_out = "".join(f"; {note[0].lower()}{note[1:].rstrip('.')}" for note in notes)
    if asked:
        return f"with {asked} there is {there} to compare: {more}{left_out}"
    return f"there is {there} to compare: {more or _BRING}{left_out}"


def _strangers(sweeps: Sequence[Sweep]) -> str:
    told = " and ".join(f"{sweep.label} ({sweep.id})" for sweep in sweeps)
    if len(sweeps) == 1:
        where = ", ".join(column.label for column in columns(sweeps))
        return (
            f"{told} is the only sweep to compare, and no draft and k was timed in two of its "
            f"columns ({where}): {_BRING}"
        )
    return (
        f"{told} have no job in common: their {_apart(sweeps)}. Run the same `make sweep` "
        "ARGS on each, or name other sweeps with --sweep"
    )


def _apart(sweeps: Sequence[Sweep]) -> str:
    found = settings_apart([sweep.records for sweep in sweeps])
    told = [f"{name} {' against '.join(values)}" for name, values in found.items()]
    return "; ".join(told) or "drafts, k and seeds are combined differently"
