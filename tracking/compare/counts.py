"""Whether the counts of the same jobs agree, and if not, where and why. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pipeline.records import JobRecord
from tracking.compare.matching import DIGESTS, Difference, Match, differences, match
from tracking.compare.parting import Closest, Parting, closest, parting
from tracking.compare.sweeps import Sweep

_FIGURES = "accepted rounds drafted emitted target_passes".split()
_MOST_FETCHED = 20  # disagreements whose texts are looked at

Fetch = Callable[[Sweep, JobRecord], JobRecord]
"""Gives the whole record, with its text, of one that was read without."""


@dataclass(frozen=True)
class Disagreement:
    """Two sweeps' counts of one job. `figures` maps a name to both values, where they differ.

    `machines` are the `machine.*` tags of both records. `parting` is None where the texts are equal
    or not known.
    """

    name: str
    labels: tuple[str, str]
    figures: dict[str, tuple[float, float]]
    machines: tuple[dict[str, str], dict[str, str]]
    differences: tuple[Difference, ...]
    parting: Parting | None
    closest: Closest


@dataclass(frozen=True)
class Counts:
    """`apart` says what sets matched jobs apart: how many of them, and an example."""

    matches: Sequence[Match]
    alone: dict[str, list[JobRecord]]  # jobs that only one sweep has, by its label
    disagreements: Sequence[Disagreement]
    apart: Sequence[Apart]

    @property
    def agreeing(self) -> int:
        return sum(m.agrees for m in self.matches)

    @property
    def same_jobs(self) -> int:
        return sum(m.same_job for m in self.matches)


@dataclass(frozen=True)
class Apart:
    """One kind of difference between two sweeps, over all their matched jobs."""

    labels: tuple[str, str]
    difference: Difference  # of the first such job
    jobs: int
    drafts: tuple[str, ...]  # whose jobs differ so
    every: bool  # all matched jobs do
    disagreeing: int  # of those jobs, how many disagree


def compare_counts(sweeps: Sequence[Sweep], fetch: Fetch) -> Counts:
    """`fetch` is called for the first jobs that disagree, and for no other."""
    matches, alone = match(sweeps)
    apart = [
        pair
        for found in matches
        for pair in found.pairs()
        if len({record.tags["counts.digest"] for _, record in pair}) > 1
    ]
    differing = [
        _disagreement(*pair, fetch if place < _MOST_FETCHED else _as_it_is)
        for place, pair in enumerate(apart)
    ]
    by_label = {sweep.label: alone[sweep.id] for sweep in sweeps if alone[sweep.id]}
    return Counts(matches, by_label, differing, _apart(matches))


def _disagreement(
    one: tuple[Sweep, JobRecord], other: tuple[Sweep, JobRecord], fetch: Fetch
) -> Disagreement:
    (left, a), (right, b) = one, other
    figures = {}
    for name in (f"count/{figure}" for figure in _FIGURES):
        if name in a.metrics and name in b.metrics and a.metrics[name] != b.metrics[name]:
            figures[name] = (a.metrics[name], b.metrics[name])
    wholes = fetch(left, a), fetch(right, b)
    return Disagreement(
        name=a.name,
        labels=(left.label, right.label),
        figures=figures,
        machines=(left.told_of(a), right.told_of(b)),
        differences=tuple(differences(a, b)),
        parting=parting(*(record.text for record in wholes)),
        closest=closest(*wholes),
    )


def _as_it_is(_: Sweep, record: JobRecord) -> JobRecord:
    return record


def _apart(matches: Sequence[Match]) -> list[Apart]:
    groups: dict[tuple[str, str, str], list[tuple[Match, Difference]]] = {}
    pairs: dict[tuple[str, str], int] = {}
    for found in matches:
        for (left, a), (right, b) in found.pairs():
            labels = (left.label, right.label)
            pairs[labels] = pairs.get(labels, 0) + 1
            for difference in differences(a, b):
                groups.setdefault((*labels, difference.what), []).append((found, difference))
    order = [*DIGESTS]
    ranked = sorted(
        groups.items(), key=lambda g: order.index(g[0][2]) if g[0][2] in order else len(order)
    )
    return [
        Apart(
            labels=(one, other),
            difference=group[0][1],
            jobs=len(group),
            drafts=tuple(dict.fromkeys(str(m.jobs[0][1].params.get("draft")) for m, _ in group)),
            every=len(group) == pairs[one, other],
            disagreeing=sum(not m.agrees for m, _ in group),
        )
        for (one, other, _), group in ranked
    ]
